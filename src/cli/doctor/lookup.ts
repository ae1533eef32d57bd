/** Resolution of host names on this machine. */
import { lookup } from 'node:dns/promises';
import { setTimeout } from 'node:timers/promises';

/** Default timeout in milliseconds. The resolver of the system may wait for minutes. */
const defaultTimeout = 3_000;

/** Resolves a host name. Throws an error with the code of Node.js, which is ETIMEOUT after the timeout. */
export async function resolveHost(
  host: string,
  resolve: (host: string) => Promise<unknown> = lookup,
  timeout = defaultTimeout,
): Promise<void> {
  const expired = setTimeout(timeout, undefined, { ref: false }).then(() => {
    throw Object.assign(new Error(`no response within ${timeout / 1_000} s`), { code: 'ETIMEOUT' });
  });
  await Promise.race([resolve(host), expired]);
}
