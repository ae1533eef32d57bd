/** Protection against guessing (docs/security.md). Only limits that hold for minutes are tried: no assertion waits for one to pass. */
// evidence: login-limit-replicas
import { afterEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { gateway, type Answer } from '../labs/integration/http.ts';
import { passwordForm, postForm, type OAuthProblem } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';

const clientSecret = 'for as long as a test 6612';

let restore = (): Promise<void> => Promise.resolve();
afterEach(() => restore());

/** Puts a limit in force, with a user and a client that nobody has guessed at yet. */
async function limit(
  limits: { maxTries?: number; perAddress?: number; perClient?: number },
  trustedProxies: readonly string[] = ['127.0.0.0/8'],
): Promise<{ username: string; client: string }> {
  const username = `guessed-${randomUUID()}`;
  const client = `client-${randomUUID()}`;
  restore = await configure((configuration) => {
    const { authentication } = configuration;
    const alice = authentication.users.find((user) => user.username === 'alice');
    authentication.users.push({ ...alice, username });
    authentication.clients.push({ name: client, secret: clientSecret });
    authentication.loginLimit = { ...authentication.loginLimit, within: '10m', ...limits };
    configuration.requests = { ...configuration.requests, trustedProxies };
  });
  return { username, client };
}

let addresses = 0;
const newAddress = (): string => `203.0.113.${(addresses += 1)}`;
const stranger = (): string => `stranger-${randomUUID()}`;

interface Attempt {
  readonly username: string;
  readonly right?: boolean;
  readonly address?: string;
  readonly client?: string;
  readonly base?: string;
}

/** As a proxy passes it on. */
const attempt = ({
  username,
  right = false,
  address = '203.0.113.250',
  client,
  base = gateway(),
}: Attempt): Promise<Answer> =>
  postForm(
    {
      ...passwordForm(username, right ? passwords.alice : 'a guess'),
      ...(client === undefined ? {} : { client_id: client, client_secret: clientSecret }),
    },
    { base, headers: { 'x-forwarded-for': address } },
  );

function expectLimited(answer: Answer): void {
  expect({ status: answer.status, ...(answer.json as OAuthProblem) }).toMatchObject({
    status: 429,
    error: 'invalid_grant',
  });
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d{0,2}$/);
  expect(answer.headers['cache-control']).toBe('no-store');
}

const expectWrong = (answer: Answer): void => expect(answer.status).toBe(400);
const expectRight = (answer: Answer): void => expect(answer.status).toBe(200);

describe('failures of one user from one address', () => {
  test('are limited, then also the right password is; elsewhere the user may log in', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    expectWrong(await attempt({ username, address }));
    expectWrong(await attempt({ username, address }));
    expectLimited(await attempt({ username, address }));
    expectLimited(await attempt({ username, address, right: true }));
    expectRight(await attempt({ username, address: newAddress(), right: true }));
    // A success somewhere else does not open this door.
    expectLimited(await attempt({ username, address, right: true }));
  });

  test('are limited alike for a name that does not exist', async () => {
    await limit({ maxTries: 2 });
    const [username, address] = [stranger(), newAddress()];
    expectWrong(await attempt({ username, address }));
    expectWrong(await attempt({ username, address }));
    expectLimited(await attempt({ username, address }));
  });

  test('are limited alike for one who is disabled', async () => {
    await limit({ maxTries: 2 });
    const address = newAddress();
    expectWrong(await attempt({ username: 'dave', address }));
    expectWrong(await attempt({ username: 'dave', address }));
    expectLimited(await attempt({ username: 'dave', address }));
  });

  test('are forgiven by a success', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    for (let round = 0; round < 3; round += 1) {
      expectWrong(await attempt({ username, address }));
      expectRight(await attempt({ username, address, right: true }));
    }
  });

  test('at once are no more than one after another', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    const answers = await Promise.all(Array.from({ length: 8 }, () => attempt({ username, address })));
    expect(answers.map(({ status }) => status).toSorted((x, y) => x - y)).toEqual([
      400, 400, 429, 429, 429, 429, 429, 429,
    ]);
  });
});

describe('failures at one replica', () => {
  test.each(['exists', 'does not exist'])('are limited at the other, for a name that %s', async (kind) => {
    const { username: existing } = await limit({ maxTries: 2 });
    const username = kind === 'exists' ? existing : stranger();
    const address = newAddress();
    expectWrong(await attempt({ username, address }));
    expectWrong(await attempt({ username, address }));
    await eventually('the other replica limits it too', async () => {
      // At a name that nobody has guessed at this would count.
      const { status } = await attempt({ username, address, right: true, base: gateway(1) });
      expect(status).toBe(429);
    });
  });

  test('are forgiven at the other', async () => {
    const { username } = await limit({ maxTries: 3 });
    const address = newAddress();
    for (let round = 0; round < 2; round += 1) expectWrong(await attempt({ username, address }));
    expectRight(await attempt({ username, address, right: true }));
    // What a replica counts, and what it forgives, goes to the others at most once a second.
    await sleep(3_000);
    for (let round = 0; round < 2; round += 1) expectWrong(await attempt({ username, address, base: gateway(1) }));
    expectRight(await attempt({ username, address, right: true, base: gateway(1) }));
  });
});

describe('failures', () => {
  // evidence: familiar-address-replicas
  test('of strangers do not lock a user out where they have logged in, at whichever replica', async () => {
    const { username } = await limit({ maxTries: 3 });
    const address = newAddress();
    expectRight(await attempt({ username, address, right: true }));
    // Where users log in goes to the others at most once a second.
    await sleep(3_000);
    const guess = (): Promise<Answer> => attempt({ username, address: newAddress(), base: gateway(1) });
    await eventually('the user is to wait elsewhere', async () => expectLimited(await guess()));
    expectRight(await attempt({ username, address, right: true, base: gateway(1) }));
  });
});

describe('failures from one address', () => {
  test('are limited for every name; a success does not forgive them', async () => {
    const { username } = await limit({ perAddress: 3 });
    const address = newAddress();
    expectWrong(await attempt({ username: stranger(), address }));
    expectWrong(await attempt({ username: stranger(), address }));
    expectRight(await attempt({ username, address, right: true }));
    expectWrong(await attempt({ username: stranger(), address }));
    expectLimited(await attempt({ username: stranger(), address }));
    expectLimited(await attempt({ username, address, right: true }));
    expectRight(await attempt({ username, address: newAddress(), right: true }));
  });

  // evidence: trusted-proxy-address
  test('count for the address that a trusted proxy saw, not for one that the client made up', async () => {
    await limit({ perAddress: 2 });
    const address = newAddress();
    for (let round = 0; round < 2; round += 1)
      expectWrong(await attempt({ username: stranger(), address: `${newAddress()}, ${address}` }));
    expectLimited(await attempt({ username: stranger(), address: `${newAddress()},${address}` }));
  });

  test('count for the peer where no proxy is trusted', async () => {
    await limit({ maxTries: 2 }, []);
    const username = stranger();
    expectWrong(await attempt({ username, address: newAddress() }));
    expectWrong(await attempt({ username, address: newAddress() }));
    expectLimited(await attempt({ username, address: newAddress() }));
  });
});

describe('failures through one client', () => {
  // evidence: client-login-limit-replicas
  test('are limited for every name and address; other clients go on', async () => {
    const { username, client } = await limit({ perClient: 3 });
    for (let round = 0; round < 3; round += 1)
      expectWrong(await attempt({ username: stranger(), address: newAddress(), client }));
    expectLimited(await attempt({ username: stranger(), address: newAddress(), client }));
    expectLimited(await attempt({ username, address: newAddress(), right: true, client }));
    // One through which nobody has failed.
    await restore();
    const other = await limit({ perClient: 3 });
    expectRight(await attempt({ username: other.username, address: newAddress(), right: true, client: other.client }));
  });
});

const tryAs = (client: string, secret: string, address: string, base = gateway()): Promise<Answer> =>
  postForm(
    { ...passwordForm('alice'), client_id: client, client_secret: secret },
    { base, headers: { 'x-forwarded-for': address } },
  );

describe('guesses at the secret of a client', () => {
  test.each(['exists', 'does not exist'])('are limited for an address, of a client that %s', async (kind) => {
    const { client: existing } = await limit({ maxTries: 2 });
    const client = kind === 'exists' ? existing : stranger();
    const address = newAddress();
    for (let round = 0; round < 2; round += 1) expect((await tryAs(client, 'a guess', address)).status).toBe(401);
    const refused = await tryAs(client, clientSecret, address);
    expect({ status: refused.status, ...(refused.json as OAuthProblem) }).toMatchObject({
      status: 429,
      error: 'invalid_client',
    });
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d{0,2}$/);
    expect((await tryAs(client, clientSecret, newAddress())).status).toBe(kind === 'exists' ? 200 : 401);
    await eventually('the other replica limits them too', async () => {
      expect((await tryAs(client, clientSecret, address, gateway(1))).status).toBe(429);
    });
  });
});
