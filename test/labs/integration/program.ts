/** Starts programs that run during a test and print lines, such as a watch. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { leash } from '../../../hack/run/server.ts';
import { eventually } from './eventually.ts';

export interface Program {
  /** Returns the complete lines of standard output so far. */
  readonly lines: () => readonly string[];
  /** Returns all standard output so far. */
  readonly text: () => string;
  /** Waits for a line for which `matches` returns true, starting at the line with index `from`. */
  line(what: string, matches: (line: string) => boolean, from?: number): Promise<string>;
  /** Ends the program unless it has already ended. */
  end(): Promise<void>;
}

/** Starts a program. Its standard input stays open until the test ends the program. */
export function startProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Program {
  const [first = '', ...rest] = [...leash, program, ...args];
  const child = spawn(first, rest, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close');
  const lines = (): string[] => output.split('\n').slice(0, -1);
  return {
    lines,
    text: () => output,
    line: (what, matches, from = 0) =>
      eventually(what, () => {
        const found = lines().slice(from).find(matches);
        if (found === undefined) throw new Error(`${program} printed\n${output}${errors}`);
        return found;
      }),
    end: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
