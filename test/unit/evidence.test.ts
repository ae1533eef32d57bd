/**
 * Checks the IDs by which documents refer to the tests that prove a statement. The ID of a test is in the comment
 * `// evidence: <id>` above the test, or above the imports if the ID refers to all tests of the file.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';

const textOf = (pattern: string): string =>
  globSync(pattern)
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');

/** Cells of the column "Evidence" of all tables in which this is the last column. */
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

test('each ID in an evidence table is in the comment above exactly one test, and no comment contains any other ID', () => {
  const above = /^ *\/\/ evidence: ([a-z\d]+(?:-[a-z\d]+)+)\n *(?:test|describe|import)\b/gm;
  const commented = [...textOf('test/**/*.test.ts').matchAll(above)].map(([, id = '']) => id);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([a-z\d]+(?:-[a-z\d]+)+)`/g)].map(([, id = '']) => id));
  expect(commented.toSorted()).toEqual([...new Set(named)].toSorted());
});
