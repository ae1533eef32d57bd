/** Events as lines: of the standard output, or of a file that is followed by another when it is large. */
import { rename, open, rm, type FileHandle } from 'node:fs/promises';
import { StandardOutput, type Logger } from '../logger.ts';
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
}

async function opened(path: string): Promise<OpenFile> {
  const handle = await open(path, 'a', 0o600);
  return { handle, size: (await handle.stat()).size };
}

export class FileSink implements Sink {
  readonly #options: FileSinkOptions;
  #waiting: string[] = [];
  #size = 0;
  #file: OpenFile | undefined;
  /** Half a line may be at the end. */
  #isBroken = false;
  #writing: Promise<void> | undefined;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  write(event: string): void {
    if (this.#size + event.length > mostWaiting) return this.#options.dropped(1);
    this.#waiting.push(event);
    this.#size += event.length;
    this.#writing ??= this.#drain();
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    await this.#file?.handle.close();
    this.#file = undefined;
  }

  async #drain(): Promise<void> {
    // What comes in the same turn goes with it.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const events = this.#waiting;
      this.#waiting = [];
      this.#size = 0;
      try {
        await this.#append(Buffer.from(`${events.join('\n')}\n`));
      } catch (error) {
        const { log, path, dropped } = this.#options;
        dropped(events.length);
        log.error('audit events could not be written', { path, events: events.length, error });
        this.#isBroken = true;
        await this.#file?.handle.close().catch(() => undefined);
        this.#file = undefined;
        await new Promise((resolve) => setTimeout(resolve, pause).unref());
      }
    }
    this.#writing = undefined;
  }

  async #append(bytes: Buffer): Promise<void> {
    const { path, maxSize } = this.#options;
    this.#file ??= await opened(path);
    if (this.#file.size > 0 && this.#file.size + bytes.length > maxSize) {
      await this.#file.handle.close();
      this.#file = undefined;
      await this.#rotate();
      this.#file = await opened(path);
    }
    const begin = this.#isBroken && this.#file.size > 0 ? [newLine] : [];
    await this.#file.handle.appendFile(Buffer.concat([...begin, bytes]));
    this.#isBroken = false;
    this.#file.size += bytes.length;
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
