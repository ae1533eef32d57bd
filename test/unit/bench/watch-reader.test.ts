import { expect, test } from '@jest/globals';
import { WatchReader } from '../../bench/watch-reader.ts';

const event = (type: string, resourceVersion: string, padding = 10): string =>
  `${JSON.stringify({
    type,
    object: { kind: 'Node', metadata: { name: 'a', resourceVersion, labels: { x: 'y'.repeat(padding) } } },
  })}\n`;

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n';

/** What a reader tells of an answer that comes in pieces of so many bytes. */
function told(answer: string, size: number): { versions: number[]; problems: string[]; status: number } {
  const versions: number[] = [];
  const problems: string[] = [];
  const reader = new WatchReader({
    event: (resourceVersion) => versions.push(resourceVersion),
    problem: (what) => problems.push(what),
  });
  const bytes = Buffer.from(answer);
  for (let at = 0; at < bytes.length; at += size) reader.read(Buffer.from(bytes.subarray(at, at + size)));
  return { versions, problems, status: reader.status };
}

const events = [event('ADDED', '7'), event('MODIFIED', '12', 5000), event('BOOKMARK', '13'), event('DELETED', '14')];
/** One event a chunk, all in one, and chunks whose ends are not the events' ends. */
const framings = [
  events.map((one) => chunk(one)).join(''),
  chunk(events.join('')),
  chunk(events.join('').slice(0, 60)) + chunk(events.join('').slice(60, 3000)) + chunk(events.join('').slice(3000)),
];

test.each([1, 2, 7, 100, 1024, 1_000_000])('events are read from pieces of %d bytes, bookmarks left out', (size) => {
  for (const framing of framings)
    expect(told(head + framing, size)).toEqual({ versions: [7, 12, 14], problems: [], status: 200 });
});

test('an event that has not ended is none yet', () => {
  expect(told(head + chunk(event('ADDED', '7').slice(0, -1)), 64).versions).toEqual([]);
});

test('a watch that is refused has a status and no events', () => {
  const refused = 'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 3\r\n\r\nno\n';
  expect(told(refused, 16)).toEqual({ versions: [], problems: [], status: 429 });
  expect(told('HTTP/1.1 200 OK\r\n', 16).status).toBe(0);
});

test('a watch that fails, that ends or that has no chunks is a problem', () => {
  expect(told(head + chunk('{"type":"ERROR","object":{"code":410}}\n'), 16).problems).toEqual([
    '{"type":"ERROR","object":{"code":410}}',
  ]);
  expect(told(`${head}0\r\n\r\n`, 16).problems).toEqual(['a watch has ended']);
  expect(told('HTTP/1.1 200 OK\r\n\r\n', 16).problems).toEqual(['the answer to a watch has no chunks']);
});
