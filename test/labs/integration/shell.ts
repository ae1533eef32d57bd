/** A shell in which the examples of a document run one after the other. Variables persist between the examples. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leash } from '../../../hack/run/server.ts';

/** Marker that the shell prints after each block. */
const end = '\u001e';

export class Shell {
  readonly #cwd: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  #isClosed = false;
  #output = '';
  #errors = '';

  constructor(cwd: string, env: Readonly<Record<string, string>>) {
    this.#cwd = cwd;
    const [first, ...rest] = [...leash, 'bash', '--norc', '-euo', 'pipefail'];
    this.#child = spawn(first, rest, { cwd, env: { ...process.env, ...env } });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.#child.stdin.on('error', () => undefined);
    this.#child.once('close', () => (this.#isClosed = true));
    this.#closed = once(this.#child, 'close');
  }

  /**
   * Returns the output of a block. `typed` is the reader's input, and `seen` receives the output so far. Throws if a
   * command fails, because the failure ends the shell.
   */
  async run(block: string, typed = '', seen: (printed: string) => void = () => undefined): Promise<string> {
    writeFileSync(join(this.#cwd, '.block'), block);
    writeFileSync(join(this.#cwd, '.typed'), typed);
    this.#output = '';
    this.#errors = '';
    this.#child.stdin.write(`. ./.block < .typed\nprintf '${end}'\n`);
    while (!this.#output.endsWith(end)) {
      if (this.#isClosed) throw new Error(`the shell has ended: ${this.#output}${this.#errors}`);
      await this.#more();
      seen(`${this.#output}${this.#errors}`);
    }
    return this.#output.slice(0, -1);
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#closed;
  }

  /** Resolves when more output has arrived, or when the shell has ended. */
  async #more(): Promise<void> {
    const waiting = new AbortController();
    const { signal } = waiting;
    const printed = [this.#child.stdout, this.#child.stderr].map((stream) => once(stream, 'data', { signal }));
    await Promise.race([...printed, this.#closed]);
    for (const one of printed) one.catch(() => undefined);
    waiting.abort();
  }
}
