/**
 * Users log in, refresh tokens and revoke sessions while a random one of three replicas is killed repeatedly.
 * `make chaos` runs this test for ten minutes and prints statistics.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { configure } from '../labs/integration/configure.ts';
import { gateway } from '../labs/integration/http.ts';
import { startExtra, startReplica, stopReplica, type Extra } from '../labs/integration/servers.ts';
import { SessionLoad } from '../labs/integration/session-load.ts';

const seconds = Number(process.env['CHAOS'] ?? 25);
const users = 6;

let third: Extra;
let restore: () => Promise<void>;
beforeAll(async () => {
  // A refresh without a response is retried at another replica, which may take long because it is starting.
  restore = await configure(({ authentication }) => {
    authentication['refreshGrace'] = '20s';
  });
  third = await startExtra();
  await third.ready();
});
afterAll(async () => {
  await third.stop();
  await restore();
});

async function killAndStart(index: number): Promise<void> {
  if (index === 2) {
    const { ports } = third;
    await third.kill();
    await sleep(randomInt(500, 2_000));
    third = await startExtra([], ports);
    await third.ready();
  } else {
    await stopReplica(index as 0 | 1, 'SIGKILL');
    await sleep(randomInt(500, 2_000));
    await startReplica(index as 0 | 1);
  }
}

// evidence: session-replica-crash
test(
  'after replicas are killed, no session is lost, no revoked session is valid, and no refresh token is accepted twice',
  async () => {
    const load = new SessionLoad([gateway(0), gateway(1), third.baseURL]);
    const end = new AbortController();
    const all = Array.from({ length: users }, () => load.person('bob', end.signal));
    const until = Date.now() + seconds * 1_000;
    let kills = 0;
    do {
      await killAndStart(randomInt(3));
      kills += 1;
      await sleep(randomInt(500, 3_000));
    } while (Date.now() < until);
    end.abort();
    await Promise.all(all);
    if (process.env['CHAOS'] !== undefined)
      console.log(JSON.stringify({ seconds, users, kills, ...load.tally }, null, 1));
    expect(load.tally.broken).toEqual([]);
    // docs/guides/accounts.md states one second. This test allows five, because the machine is busy starting servers.
    expect(load.tally.latestAcceptance).toBeLessThan(5_000);
    const { logins, refreshes, revocations, reuses } = load.tally;
    expect(Math.min(kills, logins, refreshes, revocations + reuses)).toBeGreaterThan(0);
  },
  seconds * 1_000 + 240_000,
);
