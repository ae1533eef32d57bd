import { describe, expect, test } from '@jest/globals';
import {
  failed,
  notChecked,
  ok,
  runChecks,
  Stop,
  warning,
  type Check,
  type Finding,
} from '../../../../src/cli/doctor/check.ts';
import { checks } from '../../../../src/cli/doctor/checks/index.ts';
import type { Context } from '../../../../src/cli/doctor/context.ts';
import { collect } from '../../../fakes/collect.ts';
import { formatResult, formatSummary, hasFailed, toJSON } from '../../../../src/cli/doctor/report.ts';

/** Returns a check that reports these findings and then throws the error, if any. */
const check = (name: string, needs: readonly string[], findings: readonly Finding[], error?: Error): Check => ({
  name,
  needs,
  async *run() {
    yield* findings;
    if (error !== undefined) throw error;
  },
});

const run = (...all: readonly Check[]) => collect(runChecks(all, {} as Context));

describe('the order of the checks', () => {
  test('each check depends only on earlier checks', () => {
    const names = checks.map(({ name }) => name);
    for (const [index, { needs }] of checks.entries())
      for (const name of needs) expect(names.slice(0, index)).toContain(name);
    expect(new Set(names).size).toBe(names.length);
  });

  test('a check is not run if a check that it depends on has failed or was not run', async () => {
    const results = await run(
      check('a', [], [failed('broken', 'fix a')]),
      check('b', ['a'], [ok('')]),
      check('c', ['b'], [ok('')]),
      check('d', [], [ok('fine')]),
    );
    expect(results.map(({ findings }) => findings)).toEqual([
      [failed('broken', 'fix a')],
      [notChecked('needs the check "a" to pass')],
      [notChecked('needs the check "b" to pass')],
      [ok('fine')],
    ]);
  });

  test('a check is run if a check that it depends on has a warning or lacks a permission', async () => {
    const results = await run(
      check('a', [], [warning('odd')]),
      check('b', [], [], new Stop(notChecked('needs the right to get pods'))),
      check('c', ['a', 'b'], [ok('fine')]),
    );
    expect(results[2]?.findings).toEqual([ok('fine')]);
  });

  test('a check that lacks a permission or throws keeps its earlier findings', async () => {
    const [right, error] = await run(
      check('a', [], [ok('first')], new Stop(notChecked('needs the right to get pods'))),
      check('b', [], [ok('first')], new Error('no response')),
    );
    expect(right?.findings).toEqual([ok('first'), notChecked('needs the right to get pods')]);
    expect(error?.findings).toEqual([ok('first'), failed('no response')]);
  });
});

test('the doctor returns the result of a check before the next check completes', async () => {
  const never: Check = { ...check('b', [], []), run: () => neverEnding() };
  const first = await runChecks([check('a', [], [ok('fine')]), never], {} as Context).next();
  expect(first).toEqual({ done: false, value: { name: 'a', findings: [ok('fine')] } });
});

async function* neverEnding(): AsyncGenerator<Finding> {
  yield await new Promise<Finding>(() => undefined);
}

describe('the report', () => {
  const results = [
    { name: 'pods', findings: [ok('fine'), failed('Pod a/b is not ready\u{1b}[2J', 'kubectl logs b')] },
    { name: 'rights', findings: [warning('odd'), notChecked('needs a token')] },
    { name: 'DNS', findings: [ok('resolves')] },
  ];

  test('the text report has a line for each finding, escapes control characters, and counts each check once', () => {
    expect(results.flatMap((result) => formatResult(result).split('\n'))).toEqual([
      'ok           pods: fine',
      'failed       pods: Pod a/b is not ready\\u{1b}[2J',
      '             $ kubectl logs b',
      'warning      rights: odd',
      'not checked  rights: needs a token',
      'ok           DNS: resolves',
    ]);
    expect(formatSummary(results)).toBe('1 failed, 1 warning, 0 not checked, 1 ok');
    expect(hasFailed(results)).toBe(true);
    expect(hasFailed(results.slice(1))).toBe(false);
  });

  test('the JSON report contains the most severe status of each check', () => {
    const subject = { version: '3.0.0', time: '2026-01-01T00:00:00.000Z', namespace: 'a', service: 'b' };
    expect(toJSON(results, subject)).toEqual({
      ...subject,
      summary: { failed: 1, warning: 1, 'not checked': 0, ok: 1 },
      checks: [
        { name: 'pods', status: 'failed', findings: results[0]?.findings },
        { name: 'rights', status: 'warning', findings: results[1]?.findings },
        { name: 'DNS', status: 'ok', findings: results[2]?.findings },
      ],
    });
  });
});
