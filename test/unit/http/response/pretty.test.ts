import { expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { formatted, wantsPretty } from '../../../../src/http/response/pretty.ts';

const json = 'application/json';
const wanted = new AbortController();

const indentedText = async (pieces: readonly Buffer[]): Promise<string> => {
  const text: Buffer[] = [];
  for await (const part of (await formatted([pieces], json, wanted)).parts) text.push(...part);
  return Buffer.concat(text).toString();
};

test('indented JSON equals the output of JSON.stringify(), however the text is split into chunks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.array(fc.nat(60)), async (value, lengths) => {
      let rest = Buffer.from(JSON.stringify(value));
      const pieces = lengths.map((length) => {
        const piece = rest.subarray(0, length);
        rest = rest.subarray(length);
        return piece;
      });
      expect(await indentedText([...pieces, rest])).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

const large = Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'é"\\{}[],:', none: {}, some: [[], [1]] }));
const text = Buffer.from(JSON.stringify(large));

test('JSON that is larger than a memory block is indented correctly', async () => {
  expect(await indentedText([text])).toBe(JSON.stringify(large, null, 2));
});

test('JSON with 1,000 levels of nesting is indented correctly', async () => {
  const deep = Buffer.from('['.repeat(1_000) + ']'.repeat(1_000));
  expect(await indentedText([deep])).toBe(JSON.stringify(JSON.parse(deep.toString()), null, 2));
});

test('indented JSON has a Content-Length if it fits in one block, and is otherwise indented while the client reads', async () => {
  const small = await formatted([[Buffer.from('{"a":1}')]], json, wanted);
  expect(small.length).toBe(JSON.stringify({ a: 1 }, null, 2).length);
  let taken = 0;
  function* parts(): Generator<Buffer[]> {
    for (; taken < 100; taken += 1) yield [Buffer.from(`"${'x'.repeat(10_000)}"`)];
  }
  const { length, parts: blocks } = await formatted(parts(), json, wanted);
  expect(length).toBeUndefined();
  expect(taken).toBeLessThan(10);
  for await (const block of blocks) if (block.length > 0) break;
  expect(taken).toBeLessThan(10);
});

test('indenting a nested document creates at most one block at a time', async () => {
  const depth = 2_000;
  const { parts } = await formatted([[Buffer.from('['.repeat(depth))]], json, wanted);
  for await (const blocks of parts) expect(Buffer.concat(blocks).length).toBeLessThanOrEqual(64 * 1024);
});

test('indenting yields to other work after every few kilobytes, and stops when the client disconnects', async () => {
  let looks = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => (looks += 1));
  const controller = new AbortController();
  const document = formatted([[text]], json, controller);
  const atFirst = looks;
  controller.abort();
  await expect(document).rejects.toThrow('aborted');
  clock.mockRestore();
  expect(atFirst).toBeLessThan(5);
});

test.each([
  ['not indented', '', 'kubectl/v1.36'],
  ['indented', '', 'curl/8'],
  ['indented', '', 'Mozilla/5.0 (X11)'],
  ['not indented', '', ''],
  ['indented', 'pretty=', 'curl/8'],
  ['not indented', 'pretty=0', 'curl/8'],
  ['indented', 'pretty=true', 'kubectl'],
  ['indented', 'pretty=1', 'kubectl'],
])('JSON is %s for the query "%s" and the user agent "%s"', (outcome, query, userAgent) => {
  const pretty = new URLSearchParams(query).get('pretty') ?? undefined;
  expect(wantsPretty(pretty, userAgent === '' ? undefined : userAgent)).toBe(outcome === 'indented');
});
