/** Writes events as lines to standard output, or to a file that is rotated by size. */
import { rename, open, rm, type FileHandle } from 'node:fs/promises';
import { setImmediate as immediate } from 'node:timers/promises';
import { StandardOutput, type Logger } from '../runtime/logger.ts';
import { withoutSpan } from '../runtime/tracing.ts';
import type { Sink } from './sink.ts';

export function standardOutputSink(): Sink {
  const output = new StandardOutput();
  return {
    write: (event) => output.write(event),
    async close() {
      output.close();
    },
  };
}

/** Maximum characters that wait for the disk; further events are dropped. */
const maxWaiting = 64 * 1024 * 1024;
const newLine = Buffer.from('\n');
/** Milliseconds between two attempts after a failure. */
const pause = 1_000;

export interface FileSinkOptions {
  readonly path: string;
  /** Maximum bytes of a file before it is rotated. */
  readonly maxSize: number;
  /** Number of rotated files. `path.1` is the newest rotated file. */
  readonly maxBackups: number;
  readonly log: Logger;
  /** Receives the number of dropped events. */
  readonly dropped: (events: number) => void;
}

interface OpenFile {
  readonly handle: FileHandle;
  size: number;
  /** Size at which the file is rotated. */
  readonly maxSize: number;
}

async function openFile(path: string, maxSize: number): Promise<OpenFile> {
  const handle = await open(path, 'a', 0o600);
  return { handle, size: (await handle.stat()).size, maxSize };
}

export class FileSink implements Sink {
  readonly #options: FileSinkOptions;
  #waiting: string[] = [];
  #size = 0;
  #file: OpenFile | undefined;
  /** True if the file may end with an incomplete line. */
  #isBroken = false;
  #writing: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  write(event: string): void {
    if (this.#size + event.length > maxWaiting) return this.#options.dropped(1);
    this.#waiting.push(event);
    this.#size += event.length;
    this.#writing ??= withoutSpan(() => this.#drain());
  }

  /** Tries once more to write the waiting events, and drops them if that fails. */
  async close(): Promise<void> {
    this.#isClosing = true;
    while (this.#writing !== undefined) await this.#writing;
    this.#isClosing = false;
    await this.#file?.handle.close();
    this.#file = undefined;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Further events of the same turn of the event loop are written together, because a write is a task of another
      // thread, which costs more than an event.
      await immediate();
      const events = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(Buffer.from(`${events.join('\n')}\n`));
        for (const { length } of events) this.#size -= length;
      } catch (error) {
        this.#waiting = [...events, ...this.#waiting];
        await this.#fail(error as Error);
      }
    }
    this.#writing = undefined;
  }

  /**
   * Waits before the events are written again. A line may then be in the file twice, and an incomplete line may remain.
   */
  async #fail(cause: Error): Promise<void> {
    const { log, path, dropped } = this.#options;
    log.error('audit log write failed', { path, events: this.#waiting.length, error: cause });
    this.#isBroken = true;
    await Promise.allSettled([this.#file?.handle.close()]);
    this.#file = undefined;
    if (!this.#isClosing) return await new Promise((resolve) => void setTimeout(resolve, pause).unref());
    dropped(this.#waiting.length);
    this.#waiting = [];
    this.#size = 0;
  }

  async #append(bytes: Buffer): Promise<void> {
    const { path, maxSize } = this.#options;
    this.#file ??= await openFile(path, maxSize);
    if (this.#file.size > 0 && this.#file.size + bytes.length > this.#file.maxSize) {
      await this.#file.handle.close();
      this.#file = undefined;
      this.#file = await this.#next();
    }
    const begin = this.#isBroken && this.#file.size > 0 ? [newLine] : [];
    await this.#file.handle.appendFile(Buffer.concat([...begin, bytes]));
    this.#isBroken = false;
    this.#file.size += bytes.length;
  }

  /**
   * Opens the next file. If rotation fails, continues with the same file and tries again when the file has grown by
   * `maxSize`.
   */
  async #next(): Promise<OpenFile> {
    const { path, maxSize, log } = this.#options;
    try {
      await this.#rotate();
      return await openFile(path, maxSize);
    } catch (error) {
      log.error('audit log rotation failed', { path, error });
      const file = await openFile(path, maxSize);
      return { ...file, maxSize: file.size + maxSize };
    }
  }

  async #rotate(): Promise<void> {
    const { path, maxBackups } = this.#options;
    await rm(`${path}.${maxBackups}`, { force: true });
    for (let index = maxBackups - 1; index >= 0; index -= 1) {
      const from = index === 0 ? path : `${path}.${index}`;
      await rename(from, `${path}.${index + 1}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    }
  }
}
