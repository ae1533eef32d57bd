/**
 * make mutants [FILES="src/auth src/gateway"] [TESTS="test/unit/auth"]: makes one change at a time in these folders or
 * files, and runs the unit and conformance tests that reach the changed code. Prints the mutants that no test kills;
 * see README.md.
 */
import { globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { instrument, type Mutant } from './instrument.ts';
import { Kills } from './kills.ts';
import { tryFile } from './try-file.ts';

const defaultFiles =
  'src/auth src/gateway src/apimachinery/visible-namespaces.ts src/logs/query/visible.ts src/logs/stores/with-scope.ts src/oauth src/accounts src/tokens';
const folder = '.cluster/mutants';
/** Maximum test time per mutant in milliseconds. A single test may take longer. */
const budget = 15_000;
/** Tests that take minutes, or that start separate processes, in which no mutant is active. */
const excluded = /\/(framing|hostile-strings)[^/]*\.test\.ts$/;

const pathsIn = (text: string): string[] => text.split(/[ ,]+/).filter((path) => path !== '');
const under = (path: string, pattern: string): string[] =>
  statSync(path).isDirectory() ? globSync(`${path}/${pattern}`).toSorted() : [path];
const workers = Number(process.env['WORKERS'] ?? availableParallelism());

mkdirSync(folder, { recursive: true });
const sources = `${folder}/sources.json`;
const mutants = await instrument(
  pathsIn(process.env['FILES'] || defaultFiles).flatMap((path) => under(path, '**/*.ts')),
  sources,
);
const kills = new Kills(`${folder}/killed.json`);
const reached = new Set<string>();
/** Mutants of code that runs while a module is loaded. */
const loaded = new Set<string>();
/** Remaining milliseconds for the tests of each mutant. */
const remaining = new Map(mutants.map(({ id }) => [id, budget]));
await tryAll();
print();

/**
 * Runs one test file after the other in each worker: first the unit tests of the mutated files, then the other unit
 * tests, then the conformance tests.
 */
async function tryAll(): Promise<void> {
  const tests = pathsIn(process.env['TESTS'] || 'test/unit test/conformance')
    .flatMap((path) => under(path, path.startsWith('test/unit') ? '**/*.test.ts' : '*.test.ts'))
    .filter((file) => !excluded.test(file));
  const paths = new Set(mutants.map(({ path }) => path.replace(/^src/, 'test/unit').replace(/\.ts$/, '.test.ts')));
  const rank = (file: string): number => (paths.has(file) ? 0 : file.startsWith('test/unit') ? 1 : 2);
  const queue = [...new Set(tests)].toSorted((one, other) => rank(one) - rank(other));
  const total = queue.length;
  const work = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      await tryWith(file);
      kills.save();
      console.error(`${total - queue.length} of ${total} ${file}: ${alive().length} mutants remain`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

function alive(): Mutant[] {
  return mutants.filter(({ key }) => !kills.has(key));
}

async function tryWith(file: string): Promise<void> {
  const byId = new Map(mutants.map((mutant) => [mutant.id, mutant]));
  const candidates = alive().flatMap(({ id }) => {
    const time = remaining.get(id) ?? 0;
    return time > 0 ? [[id, time] as const] : [];
  });
  if (candidates.length === 0) return;
  await tryFile({
    file,
    sources,
    mutants: new Map(candidates),
    report: (id, { by, milliseconds }) => {
      const { key = '' } = byId.get(id) ?? {};
      reached.add(id);
      remaining.set(id, (remaining.get(id) ?? 0) - milliseconds);
      if (by !== undefined) kills.add(key, file, by);
    },
    loaded: (ids) => {
      for (const id of ids) loaded.add(id);
    },
    failed: (titles) => {
      for (const title of titles) console.error(`excluded because it fails without a mutant: ${file}: ${title}`);
    },
  });
}

function print(): void {
  const totals = new Map<string, { all: number; killed: number }>();
  for (const { id, path, line, column, mutatorName, replacement, key } of mutants) {
    const isKilled = kills.has(key);
    if (!isKilled && !reached.has(id) && loaded.has(id)) continue;
    for (const group of [path, 'all']) {
      const total = totals.get(group) ?? { all: 0, killed: 0 };
      total.all += 1;
      if (isKilled) total.killed += 1;
      totals.set(group, total);
    }
    if (isKilled) continue;
    const text = readFileSync(path, 'utf8').split('\n')[line - 1]?.trim();
    const status = reached.has(id) ? 'survived' : 'no test reaches it';
    console.log(`${path}:${line}:${column} ${status}: ${mutatorName} ${short(replacement)}\n    ${text}`);
  }
  for (const [group, { all, killed: dead }] of totals)
    console.log(`${group}: ${dead} of ${all} mutants killed, ${((100 * dead) / all).toFixed(1)} %`);
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 100 ? `${line.slice(0, 97)}…` : line;
}
