/** Tests `multipleLogin: false` on two replicas: exactly one of several concurrent logins stays valid. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Session } from '../../../src/tokens/sessions/session.ts';
import { sessionsPath } from '../../../src/config/names.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { PasswordLogin } from '../../../src/oauth/password-login.ts';
import { namespace, startAccounts, type Accounts } from '../../labs/accounts.ts';
import { settle } from '../../labs/cluster-fakes.ts';
import { redeem } from '../../labs/sessions.ts';

const log = createLogger({ silent: true });
const context = {
  auditID: '',
  sourceIP: '192.0.2.1',
  userAgent: '',
  log,
  annotate: () => undefined,
} as unknown as RequestContext;

let replicas: [Accounts, Accounts];
beforeEach(async () => {
  const first = await startAccounts();
  replicas = [first, await startAccounts({ beside: first })];
});
afterEach(async () => {
  await Promise.all(replicas.map((replica) => replica.stop()));
});

async function begin(replica: Accounts): Promise<Session> {
  const account = replica.directory.account('alice');
  if (account === undefined) throw new Error('alice is not there');
  const login = new PasswordLogin({ ...replica, multipleLogin: () => false });
  return (await login.startSession({ account }, { client: 'platform', context })).session;
}

/** Returns the names of the sessions that are not revoked. */
const remaining = (): string[] =>
  replicas[0].cluster
    .list(sessionsPath(namespace))
    .filter((object) => (object as unknown as Session).status.phase !== 'Revoked')
    .map(({ metadata }) => metadata.name);

/** Creates an authorization code for the user of a login. */
async function code({ sessions }: Accounts, login: Session): Promise<string> {
  const { userName, userUID, credentialID = '' } = login.spec;
  const spec = { userName, userUID, credentialID, clientID: 'console' };
  return await sessions.codes.create({ ...spec, code: { redirectURI: 'x' } }, 60_000, false);
}

test('only the last of several sequential logins stays valid if multipleLogin is disabled, even if the watches report nothing', async () => {
  const [one, other] = replicas;
  for (const { client } of replicas) client.holdWatches();
  await begin(one);
  await begin(one);
  const last = await begin(other);
  expect(remaining()).toEqual([last.metadata.name]);
});

test('only the concurrent login whose session is written last stays valid if multipleLogin is disabled, whatever the order of the replicas', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 2, maxLength: 5 }),
      fc.infiniteStream(fc.integer({ min: 0, max: 4 })),
      async (where, turns) => {
        const wait = async (): Promise<void> => {
          for (let left = Number(turns.next().value); left > 0; left -= 1) await new Promise(setImmediate);
        };
        for (const { client } of replicas) {
          client.before = wait;
          client.after = wait;
        }
        const started = await Promise.all(where.map((index) => begin(replicas[index as 0 | 1])));
        const [last] = started.toSorted(
          (a, b) => Number(b.metadata.resourceVersion ?? 0) - Number(a.metadata.resourceVersion ?? 0),
        );
        expect(remaining()).toEqual([last?.metadata.name]);
      },
    ),
    { numRuns: 25 },
  );
});

describe('an authorization code while multipleLogin is disabled', () => {
  test('redeeming an authorization code of the last login starts a session that stays valid, even if an earlier login completes late', async () => {
    const [one, other] = replicas;
    const { promise, resolve: proceed } = Promise.withResolvers<void>();
    one.client.after = async ({ method }) => {
      if (method === 'POST') await promise;
    };
    const early = begin(one);
    await settle();
    const last = await begin(other);
    const redeemed = await redeem(other.sessions, await code(other, last), { clientID: 'console' });
    if (typeof redeemed === 'string') throw new Error(redeemed);
    proceed();
    expect(remaining()).not.toContain((await early).metadata.name);
    expect(remaining().toSorted()).toEqual([last.metadata.name, redeemed.session.metadata.name].toSorted());
  });

  test('redeeming an authorization code of a revoked login starts no session while multipleLogin is disabled', async () => {
    const [one, other] = replicas;
    const waiting = await code(one, await begin(one));
    const last = await begin(other);
    expect(await redeem(one.sessions, waiting, { clientID: 'console' })).toBe('ended');
    expect(remaining()).toEqual([last.metadata.name]);
  });
});

test("a login that cannot revoke the user's other logins fails, and its session is revoked", async () => {
  const [one, other] = replicas;
  const first = await begin(one);
  other.client.before = ({ query }) => {
    if (query['resourceVersionMatch'] !== undefined) throw unreachable(new Error('down'));
  };
  await expect(begin(other)).rejects.toMatchObject({ code: 503 });
  await settle();
  expect(remaining()).toEqual([first.metadata.name]);
});
