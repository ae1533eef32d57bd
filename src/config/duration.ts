/**
 * Go's duration syntax, as Kubernetes' own configuration uses it: '2h', '1h30m', '500ms', '7d' is not one.
 * Milliseconds; undefined if the text is no duration.
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    total += Number(amount) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unit as 'ms' | 's' | 'm' | 'h'];
  return total;
}

/** Kubernetes' quantity for bytes: '1Gi', '500M', '1024'. Undefined if the text is none. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+)(Ki|Mi|Gi|Ti|k|M|G|T)?$/.exec(text);
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
