/**
 * Process that measures only the password verification of the server, which is the lower bound for a token of the
 * password grant. Prints a `Measured` and exits.
 */
import { Passwords } from '../../src/accounts/passwords/passwords.ts';
import { concurrency, loginSeconds, type Measured } from './job.ts';
import { memory } from './processes.ts';
import { ascending, quantile } from './statistics.ts';

const passwords = new Passwords();
const hash = await passwords.hash('a password');
const problems = new Set<string>();
const times: number[] = [];
const before = process.cpuUsage();
const begin = performance.now();
const elapsed = (): number => (performance.now() - begin) / 1000;

await Promise.all(
  Array.from({ length: concurrency }, async () => {
    while (elapsed() < loginSeconds) {
      const started = performance.now();
      if (!(await passwords.verify(hash, 'a password'))) problems.add('the right password is refused');
      times.push(performance.now() - started);
    }
  }),
);

const seconds = elapsed();
const { user, system } = process.cpuUsage(before);
const sorted = ascending(times);
const measured: Measured = {
  requests: times.length,
  seconds,
  cpu: (user + system) / 1000,
  cpuBehind: 0,
  changes: 0,
  changesPerSecond: 0,
  p50: quantile(sorted, 0.5),
  p99: quantile(sorted, 0.99),
  bytes: 0,
  ...memory([process.pid]),
  generatorBusy: 0,
  problems: [...problems],
};
process.stdout.write(JSON.stringify(measured));
