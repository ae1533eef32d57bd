import { text } from 'node:stream/consumers';
import { maxPasswordBytes, Passwords } from '../accounts/passwords/passwords.ts';
import { parseArguments } from '../config/flags.ts';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/**
 * Prompts for a line at the terminal without echo. Returns '' after Ctrl-C or Ctrl-D. Returns several lines if they
 * arrived together.
 */
export async function promptSecretly(prompt: string, input: Input): Promise<string> {
  const lines: string[] = [];
  // Without an output, readline does not echo the input.
  const reader = createInterface({ input, terminal: true, historySize: 0 });
  // The prompt is written only after echo is off, because some users type immediately.
  process.stderr.write(prompt);
  // Pasted lines arrive together. All lines are returned, so that the caller can reject the input instead of losing
  // lines.
  reader.on('line', (line) => {
    lines.push(line);
    setImmediate(() => reader.close());
  });
  await once(reader, 'close');
  process.stderr.write('\n');
  return lines.join('\n');
}

/** Reads a password, twice at a terminal, and prints its hash. Returns the exit code. Throws UsageError. */
export async function hashPassword(argv: readonly string[], input: Input = process.stdin): Promise<number> {
  parseArguments(argv, 'hash-password', 0);
  const isTerminal = input.isTTY === true;
  const password = isTerminal ? await promptSecretly('Password: ', input) : (await text(input)).replace(/\r?\n$/, '');
  const problem =
    problemOf(password) ??
    (isTerminal && (await promptSecretly('Confirm password: ', input)) !== password
      ? 'the passwords do not match'
      : undefined);
  if (problem !== undefined) {
    console.error(`hash-password: ${problem}`);
    return 2;
  }
  console.log(await new Passwords().hash(password));
  return 0;
}

function problemOf(password: string): string | undefined {
  if (/[\r\n]/.test(password)) return 'the password must be a single line';
  if (password.length >= 8 && Buffer.byteLength(password) <= maxPasswordBytes) return undefined;
  return `the password must have at least 8 characters and at most ${maxPasswordBytes} bytes; enter it at a terminal or send it to standard input`;
}
