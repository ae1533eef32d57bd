/** docs/oauth-rfcs.md says what covers each demand; here it is held to that. */
import { describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const document = readFileSync(join(root, 'docs/oauth-rfcs.md'), 'utf8');

interface Row {
  /** The first cells, to find it by. */
  readonly what: string;
  readonly tests: readonly string[];
}

/** The rows of all tables below a heading; the last cell of each names its tests. */
function rowsBelow(heading: string): Row[] {
  const [, section = ''] = new RegExp(`\n## ${heading}[^\n]*\n(.*?)(?=\n## |$)`, 's').exec(document) ?? [];
  return section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
    .map((line) => {
      const cells = line.slice(2, -2).split(' | ');
      return { what: cells.slice(0, 2).join(' '), tests: cells.at(-1)?.split('<br>') ?? [] };
    });
}

const quoted = /'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`/;
const title = new RegExp(`\\(\\s*(?:${quoted.source}),\\s*(?:async\\s*)?\\(`, 'g');
const sources = new Map<string, { readonly titles: ReadonlySet<string>; readonly text: string }>();

/** The names of the tests in a file as they stand there, of many cases the template; none if there is no such file. */
function sourceOf(file: string): { readonly titles: ReadonlySet<string>; readonly text: string } {
  let source = sources.get(file);
  if (source === undefined) {
    const path = join(root, `test/${file}.test.ts`);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const names = [...text.matchAll(title)].map(([, ...found]) => found.find((name) => name !== undefined) ?? '');
    source = { titles: new Set(names.map((name) => name.replace(/\\(.)/g, '$1'))), text };
    sources.set(file, source);
  }
  return source;
}

/** `file › name`, or `file › name › case`. */
function isThere(reference: string): boolean {
  const [file = '', name = '', one] = reference.split(' › ');
  const { titles, text } = sourceOf(file);
  return titles.has(name) && (one === undefined || ["'", '"', '`'].some((mark) => text.includes(mark + one + mark)));
}

const rfcs = [6749, 6750, 7009, 7519, 7636, 7662, 8414, 8628, 8693, 9068, 9207, 9700].map((number) => `RFC ${number}`);

describe.each([...rfcs, 'Attacks'])('%s', (heading) => {
  test('has rows, each with tests that there are', () => {
    const rows = rowsBelow(heading);
    expect(rows.length).toBeGreaterThan(2);
    const missing = rows.flatMap(({ what, tests }) =>
      tests.filter((one) => !isThere(one)).map((one) => `${what}: ${one}`),
    );
    expect(missing).toEqual([]);
  });
});

test('a name is found in every way in which tests are written, and one that there is not is missed', () => {
  const here = 'unit/oauth/rfcs';
  expect(isThere(`${here} › has rows, each with tests that there are`)).toBe(true);
  expect(isThere('unit/oauth/endpoints/metadata › verifies the %s')).toBe(true);
  expect(isThere('unit/tokens/jwt › is one that %s › is empty')).toBe(true);
  expect(isThere('unit/tokens/jwt › is one that %s › is full')).toBe(false);
  for (const name of ['', 'has rows', 'missing']) expect(isThere(`${here} › ${name}`)).toBe(false);
  expect(isThere('unit/oauth/nowhere › verifies the %s')).toBe(false);
});
