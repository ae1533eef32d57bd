/** Order of test files for jest: the same order in every run, independent of jest's cache of earlier runs. */
import { relative } from 'node:path';

/**
 * Files that run first. The conformance files take longest. If such a file started last, it would run alone while other
 * workers are idle. The unit files collect garbage, which takes five times as long in a worker that has kept the
 * modules of other files.
 */
const first = [
  'test/conformance/framing',
  'test/conformance/hostile-strings',
  'test/conformance/streams',
  'test/unit/runtime/bounded-cache',
  'test/unit/oauth/long-names',
  'test/unit/apimachinery/list/field-path',
  'test/unit/http/listeners/listen',
];

/** Files that stop kube-apiserver run last, so that a failed restart makes no other file fail. */
const last = ['test/integration/gateway', 'test/integration/aggregator', 'test/integration/clients'];

/** Duration of slow integration files in seconds, to divide the files into parts of equal duration. */
const seconds = new Map(
  Object.entries({
    clients: 128,
    docs: 78,
    'generated-clients': 62,
    aggregator: 55,
    kubectl: 52,
    fuzz: 52,
    gateway: 48,
    'account-service': 46,
    authorization: 38,
    'session-faults': 35,
  }).map(([name, length]) => [`test/integration/${name}`, length]),
);
const usualSeconds = 12;

interface TestFile {
  readonly path: string;
}

const nameOf = ({ path }: TestFile): string => relative(process.cwd(), path).replace(/\.test\.ts$/, '');

/** Returns the index in `first` as a negative number, 0 for most files, or the position in `last` starting at 1. */
function rankOf(file: TestFile): number {
  const name = nameOf(file);
  return first.includes(name) ? first.indexOf(name) - first.length : last.indexOf(name) + 1;
}

const compare = (a: TestFile, b: TestFile): number =>
  rankOf(a) - rankOf(b) || (a.path < b.path ? -1 : Number(a.path > b.path));

const secondsOf = (file: TestFile): number => seconds.get(nameOf(file)) ?? usualSeconds;

/** Implements the sequencer methods that jest calls. No data is kept between runs. */
export default class Sequencer {
  sort<T extends TestFile>(tests: readonly T[]): T[] {
    return tests.toSorted(compare);
  }

  /**
   * Returns the files of one part. Files are assigned in descending order of duration, each to the part with the
   * shortest total duration so far.
   */
  shard<T extends TestFile>(
    tests: readonly T[],
    { shardIndex, shardCount }: { shardIndex: number; shardCount: number },
  ): T[] {
    const parts = Array.from({ length: shardCount }, () => ({ length: 0, files: [] as T[] }));
    for (const file of tests.toSorted((a, b) => secondsOf(b) - secondsOf(a) || compare(a, b))) {
      const [shortest] = parts.toSorted((a, b) => a.length - b.length);
      shortest?.files.push(file);
      if (shortest !== undefined) shortest.length += secondsOf(file);
    }
    return parts[shardIndex - 1]?.files ?? [];
  }

  allFailedTests<T extends TestFile>(tests: readonly T[]): T[] {
    return [...tests];
  }

  cacheResults(): void {
    // Results are not cached, because the order does not depend on them.
  }
}
