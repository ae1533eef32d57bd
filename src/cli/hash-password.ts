import { longestPassword, Passwords } from '../accounts/passwords.ts';

/** Reads a password from standard input and prints its hash. Returns the exit code. */
export async function hashPassword(): Promise<number> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const password = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (password.length < 8 || Buffer.byteLength(password) > longestPassword) {
    console.error(
      `hash-password: a password has 8 characters or more and at most ${longestPassword} bytes; give it on standard input`,
    );
    return 2;
  }
  console.log(await new Passwords().hash(password));
  return 0;
}
