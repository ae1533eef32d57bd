/** Compares the results of the same specs in both runs, and formats the report. */
import type { Difference } from './differences.ts';

export interface Result {
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** First line of the failure, at most 200 characters. */
  readonly message: string;
}

/** Results of one run, by the full name of the spec. */
export type Results = ReadonlyMap<string, Result>;

/** Fields of the report of a suite by Ginkgo (`-ginkgo.json-report`) that this module reads. */
export interface GinkgoReport {
  readonly SpecReports: readonly {
    readonly ContainerHierarchyTexts: readonly string[] | null;
    readonly LeafNodeType: string;
    readonly LeafNodeText: string;
    readonly State: string;
    /** Number of attempts, 0 if the expressions do not select the spec. */
    readonly NumAttempts: number;
    readonly Failure?: { readonly Message: string };
  }[];
  readonly SpecialSuiteFailureReasons?: readonly string[] | null;
}

/**
 * Returns the results of the selected specs. Throws if the suite itself failed, since its results are then incomplete.
 */
export function readResults({ SpecReports, SpecialSuiteFailureReasons }: GinkgoReport): Results {
  const problems = [...(SpecialSuiteFailureReasons ?? [])];
  const results = new Map<string, Result>();
  for (const { ContainerHierarchyTexts, LeafNodeType, LeafNodeText, State, NumAttempts, Failure } of SpecReports) {
    const message = Failure?.Message.trim().split('\n')[0]?.slice(0, 200) ?? '';
    const outcome = State === 'passed' || State === 'skipped' ? State : 'failed';
    if (LeafNodeType === 'It') {
      const name = [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ');
      if (NumAttempts > 0) results.set(name, { outcome, message });
    } else if (outcome === 'failed') problems.push(`${LeafNodeType}: ${message}`);
  }
  if (results.size === 0) problems.push('no spec was run');
  if (problems.length > 0) throw new Error(`the specs did not run completely: ${problems.join('; ')}`);
  return results;
}

/** Joins the results of runs with different specs. */
export function merge(runs: readonly Results[]): Results {
  const all = new Map<string, Result>();
  for (const [name, result] of runs.flatMap((run) => [...run])) {
    if (all.has(name)) throw new Error(`both selections contain the spec ${name}`);
    all.set(name, result);
  }
  return all;
}

/** Results of both runs, and the differences that make `make conformance` fail. */
export interface Comparison {
  readonly direct: Results;
  readonly gateway: Results;
  /** Names of the specs with a different outcome. */
  readonly different: readonly string[];
  readonly unlisted: readonly string[];
  /** Specs that are listed in differences.ts but do not differ. */
  readonly outdated: readonly string[];
}

export function compare(direct: Results, gateway: Results, listed: readonly Difference[]): Comparison {
  const names = [...new Set([...direct.keys(), ...gateway.keys()])].toSorted();
  const different = names.filter((name) => direct.get(name)?.outcome !== gateway.get(name)?.outcome);
  const expected = listed.map(({ spec }) => spec);
  const isExpected = (name: string): boolean =>
    expected.includes(name) && direct.get(name)?.outcome === 'passed' && gateway.get(name)?.outcome === 'failed';
  return {
    direct,
    gateway,
    different,
    unlisted: different.filter((name) => !isExpected(name)),
    outdated: expected.filter((name) => !different.includes(name)),
  };
}

const outcomes = ['passed', 'failed', 'skipped'] as const;

function row(run: string, results: Results): string {
  const counts = outcomes.map((outcome) => [...results.values()].filter((result) => result.outcome === outcome).length);
  return `| ${[run, ...counts].join(' | ')} |`;
}

const describe = (result: Result | undefined): string =>
  result === undefined ? 'did not run' : [result.outcome, result.message].filter((text) => text !== '').join(': ');

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', `## ${title}`, '', ...lines];

/** Returns the report in Markdown. */
export function format(comparison: Comparison, listed: readonly Difference[], version: string): string {
  const { direct, gateway, different, unlisted, outdated } = comparison;
  const both = (name: string): string[] => [
    `- ${name}`,
    `  - direct: ${describe(direct.get(name))}`,
    `  - gateway: ${describe(gateway.get(name))}`,
  ];
  const expected = listed.filter(({ spec }) => different.includes(spec) && !unlisted.includes(spec));
  const failed = [...direct.keys()].filter((name) =>
    [direct, gateway].every((results) => results.get(name)?.outcome === 'failed'),
  );
  return [
    `# Kubernetes end-to-end tests, ${version}`,
    '',
    `|  | ${outcomes.join(' | ')} |`,
    '| --- | --- | --- | --- |',
    row('direct', direct),
    row('gateway', gateway),
    ...section(
      'Expected differences',
      expected.flatMap(({ spec, reason }) => [...both(spec), `  - reason: ${reason}`]),
    ),
    ...section('Differences that are not in test/upstream/differences.ts', unlisted.flatMap(both)),
    ...section('Specs in test/upstream/differences.ts that no longer differ', outdated.flatMap(both)),
    ...section('Failed in both runs', failed.flatMap(both)),
    '',
  ].join('\n');
}
