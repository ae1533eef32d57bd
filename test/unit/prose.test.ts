import { expect, test } from '@jest/globals';
import { proseProblems } from '../../hack/verify/prose.ts';

test.each([
  ['a.md', 'The server\nanswers with 404.', 'a.md:2:1: “answers”'],
  ['a.md', '- one\n- Whose session ended must log in.', 'a.md:2:3: “Whose”'],
  ['a.md', '| a |\n| - |\n| It was told. |', 'a.md:3:10: “told”'],
  ['a.ts', '/** Ends.\n * Whoever asks. */\nconst a = 1;', 'a.ts:2:4: “Whoever”'],
  ['a.ts', '// One line\n// looks in vain.', 'a.ts:2:10: “in vain”'],
  ['a.ts', "throw new Error('a client that is none of ours');", 'a.ts:1:35: “none of ours”'],
  ['a.ts', 'log(`told ${name} of it`);', 'a.ts:1:6: “told”'],
  ['a.test.ts', "test.each([1])('a token is judged: %s', () => {});", 'a.test.ts:1:28: “judged”'],
  ['a.test.ts', "test('that is none is refused', () => {});", 'a.test.ts:1:7: “that”'],
  ['a.yaml', 'a:\n  description: Whose logins these are.', 'a.yaml:2:16: “Whose”'],
  ['a.yaml', 'a:\n  description: >-\n    The user\n    was told.\n  b: told', 'a.yaml:4:9: “told”'],
  ['a.yaml', 'key: value # Of one container a query reads this.', 'a.yaml:1:14: “Of”'],
  ['Makefile', '# Builds all anew.\nall:', 'Makefile:1:14: “anew”'],
])('the prose check finds a term that the style excludes in %s: %j', async (file, text, problem) => {
  expect(await proseProblems(file, text)).toContainEqual(expect.stringMatching(new RegExp(`^${problem}`)));
});

test('the prose check finds a sentence of more than 40 words', async () => {
  const [problem, ...rest] = await proseProblems('a.md', `${'many words '.repeat(25)}end here.`);
  expect(problem).toMatch(/^a\.md:1:1: a sentence of 52 words/);
  expect(rest).toEqual([]);
});

test.each([
  ['a.md', '# What is cached\n\n```sh\nask anew\n```\n\nThe field `answer` and “told” are quoted. What does it cost?'],
  ['a.ts', "const anew = ask('answer'); // The client responds."],
  ['a.test.ts', "expect('what the server answers to it').toBe(told);"],
  ['a.test.ts', "describe('of a list', () => { test('a list of none is empty', () => {}); });"],
  ['a.yaml', 'answer: told anew'],
])('the prose check accepts code, quotes, questions and headings in %s', async (file, text) => {
  expect(await proseProblems(file, text)).toEqual([]);
});
