/** Documents name the tests that prove a statement by ID: `// evidence: <id>` above a test, or above the imports for a whole file. */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';

const textOf = (pattern: string): string =>
  globSync(pattern)
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');

/** The last cells of the tables whose last column is headed "Evidence". */
const cells = [...textOf('docs/**/*.md').matchAll(/ \| Evidence +\|\n\|[-| ]+\n((?:\|.*\n)+)/g)].flatMap(
  ([, rows = '']) =>
    rows
      .trimEnd()
      .split('\n')
      .map((row) => row.slice(row.lastIndexOf(' | '))),
);

test('each row of an evidence table names a test, a command or a document', () => {
  expect(cells.filter((cell) => !/`[^`]+`|\]\(/.test(cell))).toEqual([]);
});

test('each ID in an evidence table is above exactly one test, and no other ID exists', () => {
  const above = /^ *\/\/ evidence: ([a-z\d]+(?:-[a-z\d]+)+)\n *(?:test|describe|import)\b/gm;
  const commented = [...textOf('test/**/*.test.ts').matchAll(above)].map(([, id = '']) => id);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([a-z\d]+(?:-[a-z\d]+)+)`/g)].map(([, id = '']) => id));
  expect(commented.toSorted()).toEqual([...new Set(named)].toSorted());
});
