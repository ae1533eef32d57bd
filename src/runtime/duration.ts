const units: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // U+00B5
  μs: 1e-3, // U+03BC
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};
const part = String.raw`([0-9]+\.?[0-9]*|\.[0-9]+)(${Object.keys(units).join('|')})`;
const whole = new RegExp(`^(?:${part})+$`);
const parts = new RegExp(part, 'g');
/** Pattern of a duration for JSON schemas. */
export const durationPattern = `^(0|(?:${part})+)$`;
export const maxDurationLength = 100;

/**
 * Parses Go's duration syntax without a sign (time.ParseDuration), as Kubernetes uses it: '2h', '1h30m', '1.5s',
 * '500ms', '0'. There is no unit for days. Returns milliseconds, or undefined if the text is not a duration.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (text.length > maxDurationLength || !whole.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(parts)) total += Number(amount) * (units[unit ?? ''] ?? 0);
  return total;
}

/** Parses a Kubernetes quantity of bytes: '1Gi', '500M', '1024'. Returns undefined if the text is not a quantity. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,12})(Ki|Mi|Gi|Ti|k|M|G|T)?$/.exec(text);
  if (match === null) return undefined;
  const factors: Record<string, number> = {
    Ki: 1024,
    Mi: 1024 ** 2,
    Gi: 1024 ** 3,
    Ti: 1024 ** 4,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
  };
  return Number(match[1]) * (match[2] === undefined ? 1 : (factors[match[2]] ?? 1));
}

const displayUnits = [
  [3_600, 'hour'],
  [60, 'minute'],
] as const;

/** Formats seconds for people, in the largest unit that fits and rounded up: `10 minutes`. */
export function durationText(seconds: number): string {
  const [size, unit] = displayUnits.find(([one]) => seconds >= one) ?? [1, 'second'];
  const count = Math.ceil(seconds / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
