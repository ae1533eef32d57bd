import type { Row, Figures } from './measure.ts';
import type { Server } from './cases.ts';

const columns: readonly [title: string, key: keyof Figures, scale: number][] = [
  ['CPU ms', 'cpu', 1],
  ['requests/s', 'perSecond', 1],
  ['p50 ms', 'p50', 1],
  ['p99 ms', 'p99', 1],
  ['RSS MB', 'rss', 1],
  ['peak MB', 'peak', 1],
  ['body KB', 'bytes', 1e-3],
];

const labels = 28;
const width = 11;

const line = (label: string, cells: readonly string[]): string =>
  `${label.padEnd(labels)}${cells.map((cell) => cell.padStart(width)).join('')}`;

/** Three digits that count, and whole numbers above them. */
export const figure = (value: number): string =>
  value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));

/** Every subject with its figures; under ours, what they are of each peer's. */
export function table(title: string, rows: readonly Row[]): string {
  const names = columns.map(([name]) => name);
  const lines = [title, line('', names)];
  for (const row of rows) {
    lines.push(
      row.problems.length > 0
        ? `  ${row.subject.label}: WRONG: ${row.problems.join('; ')}`
        : line(
            `  ${row.subject.label}`,
            columns.map(([, key, scale]) => figure(row.figures[key] * scale)),
          ),
    );
    for (const [peer, ratios] of Object.entries(ratiosOf(row, rows)))
      lines.push(
        line(
          `    ÷ ${peer}`,
          columns.map(([, key]) => `×${figure(ratios[key])}`),
        ),
      );
  }
  return lines.join('\n');
}

/** Ours by each peer's: by nginx with TLS where ours has TLS; kube-apiserver always has. */
export function ratiosOf(row: Row, rows: readonly Row[]): Partial<Record<Server, Figures>> {
  if (row.subject.server !== 'ours' || row.problems.length > 0) return {};
  const ratios: Partial<Record<Server, Figures>> = {};
  for (const peer of rows) {
    const { server, target } = peer.subject;
    const comparable =
      server === 'kube-apiserver' || (target.tls === undefined) === (row.subject.target.tls === undefined);
    if (server === 'ours' || !comparable || peer.problems.length > 0) continue;
    const by = (key: keyof Figures): number => row.figures[key] / peer.figures[key];
    ratios[server] = Object.fromEntries(columns.map(([, key]) => [key, by(key)])) as unknown as Figures;
  }
  return ratios;
}
