import { text } from 'node:stream/consumers';
import { longestPassword, Passwords } from '../accounts/passwords/passwords.ts';
import { parseArguments } from '../config/flags.ts';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Asks for a line at the terminal and shows nothing of what is typed. Empty after Ctrl-C and Ctrl-D; more than one line if more came at once. */
export async function askSecretly(question: string, input: Input): Promise<string> {
  const lines: string[] = [];
  // Without an output readline shows nothing.
  const reader = createInterface({ input, terminal: true, historySize: 0 });
  // Not before the terminal has stopped to show what is typed: some answer at once.
  process.stderr.write(question);
  // Lines that were pasted come at once: they are more than one, not the first and some lost ones.
  reader.on('line', (line) => {
    lines.push(line);
    setImmediate(() => reader.close());
  });
  await once(reader, 'close');
  process.stderr.write('\n');
  return lines.join('\n');
}

/** Reads a password and prints its hash. Returns the exit code. Throws UsageError. */
export async function hashPassword(argv: readonly string[], input: Input = process.stdin): Promise<number> {
  parseArguments(argv, 'hash-password', 0);
  const password =
    input.isTTY === true ? await askSecretly('Password: ', input) : (await text(input)).replace(/\r?\n$/, '');
  const problem = problemOf(password);
  if (problem !== undefined) {
    console.error(`hash-password: ${problem}`);
    return 2;
  }
  console.log(await new Passwords().hash(password));
  return 0;
}

function problemOf(password: string): string | undefined {
  if (/[\r\n]/.test(password)) return 'a password is one line, and this is more';
  if (password.length >= 8 && Buffer.byteLength(password) <= longestPassword) return undefined;
  return `a password has 8 characters or more and at most ${longestPassword} bytes; give it on standard input`;
}
