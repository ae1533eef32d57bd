/**
 * Measures the CPU time per request of another checkout's build and of two servers of this build. The difference
 * between the two servers of this build shows which differences are significant.
 */
import { resolve } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { largeClusterTimeout } from '../../hack/cluster/control-plane.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import { casesOf, type Case, type Subject } from './cases.ts';
import { changesPerSecond } from './changes.ts';
import { measureCase, measureRest, type AtRest } from './measure.ts';
import { listedAt, type Face, type ServerChoice, type Site } from './site.ts';
import type { Target } from './connection.ts';
import type { Stand } from './stand.ts';
import { median } from './statistics.ts';
import { figure } from './table.ts';

const rounds = 5;

/** Ratio of the CPU times of two servers in the same round. */
interface Ratio {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export interface Comparison {
  readonly name: string;
  readonly label: string;
  /** Median CPU time per request of each build, in milliseconds. */
  readonly before: number;
  readonly after: number;
  /** The ratio `after ÷ before`. */
  readonly change: Ratio;
  /** Ratio of the CPU times of two servers of this build. */
  readonly equal: Ratio;
  readonly problems: readonly string[];
}

interface Build {
  readonly faces: Readonly<Record<Face, Target>>;
  readonly pid: number;
}

/**
 * Compares this build with the build of another checkout. `before` is the path of that checkout, whose packages must be
 * installed.
 */
export async function compareBuilds(
  stand: Stand,
  before: string,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<Comparison[]> {
  const { site, changes } = stand;
  const root = resolve(before);
  await output('make', ['build'], { cwd: root });
  const started: Awaited<ReturnType<Site['another']>>[] = [];
  // The servers start sequentially, because a port stays free until its server listens.
  const begin = async (name: string, choice?: ServerChoice): Promise<Build> => {
    const server = await site.another(name, choice);
    started.push(server);
    await server.ready();
    await until('the nodes are listed', server.check, async () => listedAt(server.log) > 0, largeClusterTimeout);
    return server;
  };
  try {
    const earlier = await begin('before', { build: resolve(root, 'dist') });
    const again = await begin('again');
    const [pid = 0] = site.ours.pids;
    const builds: Build[] = [earlier, { faces: site.ours, pid }, again];
    const rest = await measureRest(
      builds.map((build) => ({ server: 'ours', pids: [build.pid] })),
      changes.file,
      signal,
    );
    const all: Comparison[] = [];
    for (const one of casesOf(stand).filter(({ name }) => wanted.includes(name))) {
      const step = progress(one.name);
      if (one.quiet === true) await changes.setRate(0);
      all.push(...(await compareCase(one, site, builds, rest, signal)));
      await changes.setRate(changesPerSecond);
      step.end(true);
    }
    return all;
  } finally {
    for (const server of started) await server.stop();
  }
}

/** Measures the builds in turn with each kind of request that the case sends to this server. */
async function compareCase(
  { name, subjects }: Case,
  { ours }: Site,
  builds: readonly Build[],
  rest: readonly AtRest[],
  signal: AbortSignal,
): Promise<Comparison[]> {
  const ownSubjects = subjects.filter(({ server, job }) => server === 'ours' && job !== undefined);
  const subjectsOf = ({ label, job }: Subject): Subject[] =>
    builds.map(({ faces, pid }) => {
      const face = (['plain', 'tls', 'aggregated'] as const).find((one) => ours[one] === job?.target);
      if (job === undefined || face === undefined) throw new Error(`${label} does not belong to our server`);
      return { server: 'ours', label, job: { ...job, target: faces[face], pids: [pid] } };
    });
  const rows = await measureCase({ subjects: ownSubjects.flatMap(subjectsOf) }, rest, signal, rounds);
  return ownSubjects.map(({ label }, index) => {
    const [before = [], after = [], again = []] = rows
      .slice(index * builds.length, (index + 1) * builds.length)
      .map((row) => row.rounds.map(({ cpu }) => cpu));
    return {
      name,
      label,
      before: median(before),
      after: median(after),
      change: ratio(after, before),
      equal: ratio(after, again),
      problems: rows.filter(({ subject }) => subject.label === label).flatMap(({ problems }) => problems),
    };
  });
}

function ratio(values: readonly number[], by: readonly number[]): Ratio {
  const all = values.map((value, round) => value / (by[round] ?? Number.NaN));
  return { median: median(all), lowest: Math.min(...all), highest: Math.max(...all) };
}

/**
 * Returns whether this build takes more CPU time than the other build, by more than the two servers of this build differ
 * in any round.
 */
export const isWorse = ({ change, equal }: Comparison): boolean =>
  change.median > Math.max(1, equal.highest, 1 / equal.lowest);

const textOf = ({ median: middle, lowest, highest }: Ratio): string =>
  `×${figure(middle)} (${figure(lowest)}–${figure(highest)})`.padEnd(24);

export function describeComparisons(all: readonly Comparison[]): string {
  return [
    `${''.padEnd(56)}before ms   after ms   after ÷ before          equal builds`,
    ...all.map((one) => {
      const { name, label, before, after, change, equal, problems } = one;
      const cells = [figure(before).padStart(9), figure(after).padStart(10), ` ${textOf(change)}${textOf(equal)}`];
      const verdict = problems.length > 0 ? `WRONG: ${problems.join('; ')}` : isWorse(one) ? 'WORSE' : '';
      return `${`${name}: ${label}`.padEnd(56)}${cells.join(' ')}${verdict}`.trimEnd();
    }),
  ].join('\n');
}
