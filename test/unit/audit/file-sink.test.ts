import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSink } from '../../../src/audit/log-sink.ts';
import { createLogger } from '../../../src/runtime/logger.ts';

const made: string[] = [];
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true });
});

interface Lab {
  readonly dir: string;
  readonly path: string;
  readonly lost: number[];
  readonly sink: FileSink;
  /** How many were logged. */
  readonly errors: () => number;
}

function lab(maxSize = 1_000_000, maxBackups = 2): Lab {
  const dir = mkdtempSync(join(tmpdir(), 'audit-'));
  made.push(dir);
  const path = join(dir, 'audit.log');
  const lost: number[] = [];
  const dropped = (events: number): void => void lost.push(events);
  const log = createLogger({ silent: true });
  const error = jest.spyOn(log, 'error');
  const sink = new FileSink({ path, maxSize, maxBackups, log, dropped });
  return { dir, path, lost, sink, errors: () => error.mock.calls.length };
}

/** Until the event of this number is in the file. */
async function settled(path: string, number: number): Promise<void> {
  while (!textOf(path).includes(`event-${number}`)) await turn();
}

/** Nothing, too, while another file takes its place. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a file of events', () => {
  test('has each on a line, in their order, and is readable by its owner alone', async () => {
    const { path, sink } = lab();
    for (let i = 0; i < 100; i += 1) {
      sink.write(`{"n":${i}}`);
      if (i % 7 === 0) await turn();
    }
    await sink.close();
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n)).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    );
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('is continued by the next server', async () => {
    const { path, sink } = lab();
    sink.write('1');
    await sink.close();
    sink.write('2');
    await sink.close();
    expect(readFileSync(path, 'utf8')).toBe('1\n2\n');
  });

  test('is followed by another when it is full, and the oldest goes', async () => {
    const { dir, path, sink, lost } = lab(20);
    for (let i = 0; i < 10; i += 1) {
      sink.write(`event-${i}`);
      await sink.close();
    }
    expect(readdirSync(dir).toSorted()).toEqual(['audit.log', 'audit.log.1', 'audit.log.2']);
    const texts = [`${path}.2`, `${path}.1`, path].map((file) => readFileSync(file, 'utf8'));
    expect(texts).toEqual(['event-4\nevent-5\n', 'event-6\nevent-7\n', 'event-8\nevent-9\n']);
    expect(lost).toEqual([]);
  });

  test('that cannot be written is tried again, and nothing is lost', async () => {
    const { path, sink, lost, errors } = lab();
    await mkdir(path);
    sink.write('1');
    sink.write('2');
    while (errors() === 0) await turn();
    await rmdir(path);
    sink.write('3');
    while (textOf(path) === '') await turn();
    await sink.close();
    expect(lost).toEqual([]);
    expect(readFileSync(path, 'utf8')).toBe('1\n2\n3\n');
  });

  test('that cannot be written at the end loses what is left, counted', async () => {
    const { path, sink, lost } = lab();
    await mkdir(path);
    sink.write('1');
    sink.write('2');
    await sink.close();
    expect(lost).toEqual([2]);
    await rmdir(path);
    sink.write('3');
    await sink.close();
    expect(readFileSync(path, 'utf8')).toBe('3\n');
  });

  test('is continued where no other can follow it, and that is tried again after as much again', async () => {
    const { path, sink, lost, errors } = lab(20);
    // Nothing takes its place.
    await mkdir(join(`${path}.2`, 'in the way'), { recursive: true });
    for (let i = 0; i < 6; i += 1) {
      sink.write(`event-${i}`);
      await settled(path, i);
    }
    expect(readFileSync(path, 'utf8')).toBe('event-0\nevent-1\nevent-2\nevent-3\nevent-4\nevent-5\n');
    expect(errors()).toBe(2);
    await rm(`${path}.2`, { recursive: true });
    for (let i = 6; i < 8; i += 1) {
      sink.write(`event-${i}`);
      await settled(path, i);
    }
    await sink.close();
    const texts = [`${path}.1`, path].map((file) => readFileSync(file, 'utf8'));
    expect(texts.join('')).toBe(Array.from({ length: 8 }, (_, i) => `event-${i}\n`).join(''));
    expect(texts[1]).not.toBe('');
    expect(lost).toEqual([]);
  });

  test('takes no more than there is room for while the disk is slow', async () => {
    const { sink, lost, path } = lab();
    const large = 'x'.repeat(40 * 1024 * 1024);
    sink.write(large);
    sink.write(large);
    await sink.close();
    expect(lost).toEqual([1]);
    expect(statSync(path).size).toBe(large.length + 1);
  });
});
