type Scale = readonly (readonly [from: number, label: string])[];

/** Labels of each of Grafana's units, and the smallest value that each label is for, in ascending order. */
const scales: Readonly<Record<string, Scale>> = {
  short: [[1, '']],
  reqps: [[1, ' req/s']],
  ops: [[1, ' ops/s']],
  binBps: ['B', 'KiB', 'MiB'].map((label, power) => [1024 ** power, ` ${label}/s`]),
  percentunit: [[0.01, '%']],
  s: [
    [1e-3, ' ms'],
    [1, ' s'],
    [86_400, ' days'],
  ],
};

/** Returns a value with its unit and three significant digits. Throws if the unit is unknown. */
export function format(value: number, unit: string): string {
  const scale = scales[unit];
  const [from, label] = scale?.findLast(([smallest]) => value >= smallest) ?? scale?.[0] ?? [];
  if (from === undefined) throw new Error(`unknown unit ${unit}`);
  return `${Number((value / from).toPrecision(3))}${label}`;
}
