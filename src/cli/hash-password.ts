import { text } from 'node:stream/consumers';
import { longestPassword, Passwords } from '../accounts/passwords/passwords.ts';
import { parseArguments } from '../config/flags.ts';
import { askSecretly, type Input } from './ask.ts';

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
