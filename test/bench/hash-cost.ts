import { Passwords } from '../../src/accounts/passwords.ts';

const times = 30;

/** Milliseconds of CPU that one verification of a password takes, in all threads. */
export async function hashCost(): Promise<number> {
  const passwords = new Passwords();
  const hash = await passwords.hash('a password');
  const before = process.cpuUsage();
  for (let time = 0; time < times; time++) await passwords.verify(hash, 'a password');
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}
