import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, rm, rmdir, type FileHandle } from 'node:fs/promises';
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
  /** Number of events logged so far. */
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

/** Waits until the audit log file contains the event with this number. */
async function settled(path: string, number: number): Promise<void> {
  while (!textOf(path).includes(`event-${number}`)) await turn();
}

/** Returns the text of the file, or an empty string while rotation replaces the file. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the audit log file', () => {
  test('the audit log file has one event per line, in order, and is readable only by its owner', async () => {
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

  test('the audit log file gets the events of one turn of the event loop in one write', async () => {
    const { path, sink } = lab();
    const handle = await open('/dev/null');
    const written = jest.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'appendFile');
    await handle.close();
    for (let number = 1; number <= 20; number += 1) {
      sink.write(`event-${number}`);
      await Promise.resolve();
    }
    await settled(path, 20);
    await sink.close();
    expect(written).toHaveBeenCalledTimes(1);
    written.mockRestore();
  });

  test('the audit log file is appended to when it is opened again', async () => {
    const { path, sink } = lab();
    sink.write('1');
    await sink.close();
    sink.write('2');
    await sink.close();
    expect(readFileSync(path, 'utf8')).toBe('1\n2\n');
  });

  test('the audit log file is rotated when it is full, and the oldest file is deleted', async () => {
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

  test('the audit log file is written again after an error, and no event is lost', async () => {
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

  test('the events that cannot be written to the audit log file at shutdown are counted as lost', async () => {
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

  test('the audit log file still receives events if rotation fails, and rotation is retried after the next maxSize bytes', async () => {
    const { path, sink, lost, errors } = lab(20);
    // The rotation fails because the target name is taken by a directory.
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

  test('the audit log file drops events that exceed the buffer while the disk is slow', async () => {
    const { sink, lost, path } = lab();
    const large = 'x'.repeat(40 * 1024 * 1024);
    sink.write(large);
    sink.write(large);
    await sink.close();
    expect(lost).toEqual([1]);
    expect(statSync(path).size).toBe(large.length + 1);
  });
});
