import { expect, test } from '@jest/globals';
import { WatchReader } from '../../bench/watch-reader.ts';

const event = (type: string, resourceVersion: string, padding = 10): string =>
  `${JSON.stringify({
    type,
    object: { kind: 'Node', metadata: { name: 'a', resourceVersion, labels: { x: 'y'.repeat(padding) } } },
  })}\n`;

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n';

/** Returns what a reader reports for a response that arrives in pieces of this size. */
function readerResult(response: string, size: number): { versions: number[]; problems: string[]; status: number } {
  const versions: number[] = [];
  const problems: string[] = [];
  const reader = new WatchReader({
    event: (resourceVersion) => versions.push(resourceVersion),
    problem: (what) => problems.push(what),
  });
  const bytes = Buffer.from(response);
  for (let at = 0; at < bytes.length; at += size) reader.read(Buffer.from(bytes.subarray(at, at + size)));
  return { versions, problems, status: reader.status };
}

const events = [event('ADDED', '7'), event('MODIFIED', '12', 5000), event('BOOKMARK', '13'), event('DELETED', '14')];
/** The events in one chunk each, in a single chunk, and in chunks that split events. */
const framings = [
  events.map((one) => chunk(one)).join(''),
  chunk(events.join('')),
  chunk(events.join('').slice(0, 60)) + chunk(events.join('').slice(60, 3000)) + chunk(events.join('').slice(3000)),
];

test.each([1, 2, 7, 100, 1024, 1_000_000])(
  'the watch reader counts the events in chunks of %d bytes, without bookmarks',
  (size) => {
    for (const framing of framings)
      expect(readerResult(head + framing, size)).toEqual({ versions: [7, 12, 14], problems: [], status: 200 });
  },
);

test('the watch reader does not count an incomplete event', () => {
  expect(readerResult(head + chunk(event('ADDED', '7').slice(0, -1)), 64).versions).toEqual([]);
});

test('the watch reader returns the status and no events for a rejected watch', () => {
  const refused = 'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 3\r\n\r\nno\n';
  expect(readerResult(refused, 16)).toEqual({ versions: [], problems: [], status: 429 });
  expect(readerResult('HTTP/1.1 200 OK\r\n', 16).status).toBe(0);
});

test('the watch reader reports a watch that fails, ends or is not chunked', () => {
  expect(readerResult(head + chunk('{"type":"ERROR","object":{"code":410}}\n'), 16).problems).toEqual([
    '{"type":"ERROR","object":{"code":410}}',
  ]);
  expect(readerResult(`${head}0\r\n\r\n`, 16).problems).toEqual(['a watch has ended']);
  expect(readerResult('HTTP/1.1 200 OK\r\n\r\n', 16).problems).toEqual(['the response to a watch has no chunks']);
});
