import type { Figures, Row } from './measure.ts';
import type { MemoryFigures } from './memory.ts';
import type { StartFigures } from './start-up.ts';
import { median } from './statistics.ts';
import type { WatchFigures } from './watch.ts';

const columns: readonly [title: string, key: keyof Figures, scale: number][] = [
  ['CPU ms', 'cpu', 1],
  ['behind ms', 'behind', 1],
  ['alone ms', 'alone', 1],
  ['cores', 'cores', 1],
  ['requests/s', 'perSecond', 1],
  ['p50 ms', 'p50', 1],
  ['p99 ms', 'p99', 1],
  ['RSS MB', 'rss', 1],
  ['peak MB', 'peak', 1],
  ['body KB', 'bytes', 1e-3],
];
const compared = ['cpu', 'perSecond', 'p50', 'p99', 'rss'] as const;

/** The load generator limited the requests if it was busy for a greater fraction of the time. */
const busy = 0.95;

const line = (label: string, cells: readonly string[]): string =>
  `${label.padEnd(46)}${cells.map((cell) => ` ${cell}`.padStart(11)).join('')}`;

/** Formats a number with three significant digits, or as a whole number if it has more digits. */
export const figure = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));

/** Returns a table with a line per server. */
export function table(title: string, rows: readonly Row[]): string {
  const head = line(
    '',
    columns.map(([name]) => name),
  );
  const lines = rows.map(({ subject, figures, problems }) => {
    if (problems.length > 0) return `  ${subject.label}: WRONG: ${problems.join('; ')}`;
    const mark = (key: keyof Figures): string => (key === 'perSecond' && figures.generator > busy ? '>' : '');
    const cells = columns.map(([, key, scale]) => `${mark(key)}${figure(figures[key] * scale)}`);
    return line(`  ${subject.label}`, cells);
  });
  return [title, head, ...lines].join('\n');
}

export interface Ratios {
  /** Label of our subject. */
  readonly label: string;
  readonly peer: string;
  /** Median over the rounds of `our figure ÷ figure of the peer`, with both figures of the same round. */
  readonly ratios: Readonly<Record<(typeof compared)[number], number>>;
  /** Range of the CPU ratios. */
  readonly lowest: number;
  readonly highest: number;
}

const hasTLS = ({ subject: { job } }: Row): boolean => job?.target.tls !== undefined;

/** Compares each of our subjects with each peer. The subject and the peer must both use TLS, or both use plain HTTP. */
export function ratiosOf(rows: readonly Row[]): Ratios[] {
  const right = rows.filter(({ problems }) => problems.length === 0);
  return right
    .filter(({ subject }) => subject.server === 'ours')
    .flatMap((row) =>
      right
        .filter((peer) => peer.subject.server !== 'ours' && hasTLS(peer) === hasTLS(row))
        .map((peer) => {
          const by = (key: keyof Figures): number[] =>
            row.rounds.map((round, index) => round[key] / (peer.rounds[index]?.[key] ?? Number.NaN));
          const ratios = Object.fromEntries(compared.map((key) => [key, median(by(key))])) as Ratios['ratios'];
          const { label } = row.subject;
          return {
            label,
            peer: peer.subject.label,
            ratios,
            lowest: Math.min(...by('cpu')),
            highest: Math.max(...by('cpu')),
          };
        }),
    );
}

export function ratioTable(cases: readonly { readonly name: string; readonly ratios: readonly Ratios[] }[]): string {
  const titles = compared.map((key) => columns.find(([, of]) => of === key)?.[0].replace(/ m?[sB]$/i, '') ?? '');
  const lines = cases.flatMap(({ name, ratios: all }) =>
    all.map(({ label, peer, ratios, lowest, highest }) =>
      line(`${name}: ${label} ÷ ${peer}`, [
        ...compared.map((key) => `×${figure(ratios[key])}`),
        `${figure(lowest)}–${figure(highest)}`,
      ]),
    ),
  );
  return [line('ours ÷ peer', [...titles, 'CPU from–to']), ...lines].join('\n');
}

const watchColumns: readonly [title: string, key: keyof WatchFigures][] = [
  ['µs per event', 'cpu'],
  ['events/s', 'eventsPerSecond'],
  ['lost', 'lost'],
  ['p50 ms', 'p50'],
  ['p99 ms', 'p99'],
  ['RSS MB', 'rss'],
  ['changes/s', 'perSecond'],
];

export function watchTable(title: string, all: readonly WatchFigures[]): string {
  const head = line(
    '',
    watchColumns.map(([name]) => name),
  );
  const lines = all.flatMap((one) => [
    line(
      `  ${one.label}`,
      watchColumns.map(([, key]) => figure(Number(one[key]))),
    ),
    ...one.problems.map((problem) => `    WRONG: ${problem}`),
  ]);
  return [title, head, ...lines].join('\n');
}

const megabytes = (value: number): string => `${figure(value)} MB`;

export function describeMemory({ empty, rest, json, slowLists, churn, problems }: MemoryFigures): string {
  const { before, peak, after, read } = slowLists;
  return [
    'memory: RSS of our server',
    `  empty ${megabytes(empty)}; at rest ${megabytes(rest)}, which is ${figure((rest - empty) / json)} × the JSON (${megabytes(json)}) above empty`,
    `  50 slow readers of full lists: before ${megabytes(before)}, at most ${megabytes(peak)} (×${figure(peak / before)}), after ${megabytes(after)}; they read ${megabytes(read)}`,
    `  ${figure(churn.changesPerSecond)} changes per second for ${figure(churn.seconds)} s: ${megabytes(churn.before)} in the first quarter, ${megabytes(churn.after)} in the last, at most ${megabytes(churn.peak)}`,
    ...problems.map((problem) => `  WRONG: ${problem}`),
  ].join('\n');
}

export const describeStart = ({ ready, firstList, listAfterUpstream, cpu, rss }: StartFigures): string =>
  `start: ready after ${figure(ready)} ms; the full list after ${figure(firstList)} ms, ${figure(listAfterUpstream)} ms after the upstream list; ` +
  `until then ${figure(cpu)} ms of CPU, ${megabytes(rss)}`;
