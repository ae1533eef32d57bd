/**
 * make mutants [FILES="src/auth src/gateway"]: StrykerJS changes one thing at a time in these folders or files and runs the unit and
 * conformance tests that reach it. Prints the mutants that no test kills; see README.md. Mutants whose code and tests have not changed
 * since the last run are not run again.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';

const usual =
  'src/auth src/gateway src/kapis/visible-namespaces.ts src/kapis/logging/visible.ts src/oauth src/accounts';
const folder = '.cluster/mutants';

/** The part of the report that is read (mutation-testing-report-schema). */
interface Report {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly source: string;
        readonly mutants: readonly {
          readonly mutatorName: string;
          readonly replacement?: string;
          readonly status: string;
          readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
        }[];
      }
    >
  >;
}

const counts = new Map<string, number>();
const wanted = (process.env['FILES'] || usual).split(/[ ,]+/);
mkdirSync(folder, { recursive: true });
for (const path of wanted) {
  const isFolder = statSync(path).isDirectory();
  const file = `${folder}/${path.replaceAll('/', '-')}.json`;
  const mutate = isFolder ? `${path}/**/*.ts` : path;
  // Most mutants are killed by the unit tests beside them, which take seconds; the rest is tried with all tests.
  const near = isFolder ? `${path}/**/*.test.ts` : path.replace(/\.ts$/, '.test.ts');
  const beside = near.replace(/^src/, 'test/unit');
  if (!existsSync(file) && globSync(beside).length > 0) run(mutate, file, beside);
  run(mutate, file);
  print(JSON.parse(readFileSync(file, 'utf8')) as Report);
}
printSum('all', counts);

/** `tests`: a pattern; all that reach the files unless stated. */
function run(mutate: string, file: string, tests?: string): void {
  const stryker = ['node_modules/@stryker-mutator/core/bin/stryker.js', 'run', 'hack/mutants/stryker.config.mjs'];
  const { status } = spawnSync(process.execPath, [...stryker, '--mutate', mutate, '--incrementalFile', file], {
    stdio: 'inherit',
    env: { ...process.env, ...(tests === undefined ? {} : { MUTANTS_TESTS: tests }) },
  });
  if (status !== 0) process.exit(1);
}

function print({ files }: Report): void {
  for (const [path, { source, mutants }] of Object.entries(files)) {
    const lines = source.split('\n');
    const own = new Map<string, number>();
    for (const { status, location, mutatorName, replacement = '' } of mutants) {
      for (const sum of [own, counts]) sum.set(status, (sum.get(status) ?? 0) + 1);
      if (status !== 'Survived' && status !== 'NoCoverage') continue;
      const { line, column } = location.start;
      console.log(
        `${path}:${line}:${column} ${status} ${mutatorName}: ${short(replacement)}\n    ${lines[line - 1]?.trim()}`,
      );
    }
    printSum(path, own);
  }
}

function printSum(what: string, sum: ReadonlyMap<string, number>): void {
  const of = (...statuses: string[]): number => statuses.reduce((total, one) => total + (sum.get(one) ?? 0), 0);
  const killed = of('Killed', 'Timeout', 'RuntimeError');
  const total = killed + of('Survived', 'NoCoverage');
  const share = total === 0 ? '' : `, ${((100 * killed) / total).toFixed(1)} %`;
  console.log(`${what}: ${killed} of ${total} mutants killed${share}`);
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 100 ? `${line.slice(0, 97)}…` : line;
}
