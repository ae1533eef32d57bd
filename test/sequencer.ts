/** The order of test files for jest: the same in every run, whatever jest remembers of earlier ones. */
import { relative } from 'node:path';

/**
 * The conformance files take longest: started last, one of them would run alone while other workers idle. The unit files collect garbage,
 * which costs five times as much in a worker that has kept the modules of other files.
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

/** These stop kube-apiserver: a restart that goes wrong leaves no file after them to fail. */
const last = ['test/integration/gateway', 'test/integration/aggregator', 'test/integration/clients'];

/** Seconds of the integration files that take long, for parts of equal length. */
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

/** Returns the index in `first` as a negative number, 0 for most files, and the place in `last` from 1 on. */
function rankOf(file: TestFile): number {
  const name = nameOf(file);
  return first.includes(name) ? first.indexOf(name) - first.length : last.indexOf(name) + 1;
}

const compare = (a: TestFile, b: TestFile): number =>
  rankOf(a) - rankOf(b) || (a.path < b.path ? -1 : Number(a.path > b.path));

const secondsOf = (file: TestFile): number => seconds.get(nameOf(file)) ?? usualSeconds;

/** The methods that jest calls; nothing of a run is kept for the next. */
export default class Sequencer {
  sort<T extends TestFile>(tests: readonly T[]): T[] {
    return tests.toSorted(compare);
  }

  /** Returns one of the parts: the longest file first, each goes to the part that is shortest by then. */
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
    // Nothing.
  }
}
