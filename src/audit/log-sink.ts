/** Events as lines: of the standard output, or of a file that is followed by another when it is large. */
import { rename, open, rm, type FileHandle } from 'node:fs/promises';
import { StandardOutput, type Logger } from '../runtime/logger.ts';
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

/** Characters that may wait for a disk; what does not fit is dropped. */
const mostWaiting = 64 * 1024 * 1024;
const newLine = Buffer.from('\n');
/** After a failure. */
const pause = 1_000;

export interface FileSinkOptions {
  readonly path: string;
  /** Bytes. */
  readonly maxSize: number;
  /** `path.1` is the newest of those that are full. */
  readonly maxBackups: number;
  readonly log: Logger;
  /** Told how many events were lost. */
  readonly dropped: (events: number) => void;
}

interface OpenFile {
  readonly handle: FileHandle;
  size: number;
  /** Above which another one follows. */
  readonly most: number;
}

async function opened(path: string, most: number): Promise<OpenFile> {
  const handle = await open(path, 'a', 0o600);
  return { handle, size: (await handle.stat()).size, most };
}

export class FileSink implements Sink {
  readonly #options: FileSinkOptions;
  #waiting: string[] = [];
  #size = 0;
  #file: OpenFile | undefined;
  /** Half a line may be at the end. */
  #isBroken = false;
  #writing: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  write(event: string): void {
    if (this.#size + event.length > mostWaiting) return this.#options.dropped(1);
    this.#waiting.push(event);
    this.#size += event.length;
    this.#writing ??= this.#drain();
  }

  /** What cannot be written now is lost. */
  async close(): Promise<void> {
    this.#isClosing = true;
    while (this.#writing !== undefined) await this.#writing;
    this.#isClosing = false;
    await this.#file?.handle.close();
    this.#file = undefined;
  }

  async #drain(): Promise<void> {
    // What comes in the same turn goes with it.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
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

  /** They are written again: a line may then be there twice, and the half of one alone. */
  async #fail(cause: Error): Promise<void> {
    const { log, path, dropped } = this.#options;
    log.error('audit events cannot be written', { path, events: this.#waiting.length, error: cause });
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
    this.#file ??= await opened(path, maxSize);
    if (this.#file.size > 0 && this.#file.size + bytes.length > this.#file.most) {
      await this.#file.handle.close();
      this.#file = undefined;
      this.#file = await this.#next();
    }
    const begin = this.#isBroken && this.#file.size > 0 ? [newLine] : [];
    await this.#file.handle.appendFile(Buffer.concat([...begin, bytes]));
    this.#isBroken = false;
    this.#file.size += bytes.length;
  }

  /** The same one, which is too large then, where none can follow; that is tried again when it has grown by as much again. */
  async #next(): Promise<OpenFile> {
    const { path, maxSize, log } = this.#options;
    try {
      await this.#rotate();
      return await opened(path, maxSize);
    } catch (error) {
      log.error('the audit log cannot be followed by another file', { path, error });
      const file = await opened(path, maxSize);
      return { ...file, most: file.size + maxSize };
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
