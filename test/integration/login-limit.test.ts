/**
 * Protection against password guessing (docs/security.md). Only limits that last for minutes are tested, so that no
 * limit expires during a test.
 */
// evidence: login-limit-replicas
import { afterEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { release } from '../../hack/run/chart.ts';
import { configure } from '../labs/integration/configure.ts';
import { loginFailuresPath } from '../../src/config/names.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { get } from '../labs/integration/kube.ts';
import { gateway, type HttpResponse } from '../labs/integration/http.ts';
import { passwordForm, postForm, type OAuthProblem } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';

const clientSecret = 'for as long as a test 6612';

let restore = (): Promise<void> => Promise.resolve();
afterEach(() => restore());

/** Sets a limit, and adds a user and a client without earlier failures. */
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

interface LoginFailureTables {
  readonly items: readonly {
    readonly status: { readonly failures?: readonly { readonly count: number; readonly last?: string }[] };
  }[];
}

/** Waits until a replica has published two failures, the second after `since`, in milliseconds since the epoch. */
const published = (since: number): Promise<void> =>
  eventually('a replica has published the failures', async () => {
    const { items } = await get<LoginFailureTables>(loginFailuresPath(release.namespace));
    const failures = items.flatMap(({ status }) => status.failures ?? []);
    expect(failures.some(({ count, last = '' }) => count === 2 && Date.parse(last) >= since)).toBe(true);
  });

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

/** Sends a login as if forwarded by a proxy. */
const attempt = ({
  username,
  right = false,
  address = '203.0.113.250',
  client,
  base = gateway(),
}: Attempt): Promise<HttpResponse> =>
  postForm(
    {
      ...passwordForm(username, right ? passwords.alice : 'a guess'),
      ...(client === undefined ? {} : { client_id: client, client_secret: clientSecret }),
    },
    { base, headers: { 'x-forwarded-for': address } },
  );

function expectLimited(response: HttpResponse): void {
  expect({ status: response.status, ...(response.json as OAuthProblem) }).toMatchObject({
    status: 429,
    error: 'invalid_grant',
  });
  expect(response.headers['retry-after']).toMatch(/^[1-9]\d{0,2}$/);
  expect(response.headers['cache-control']).toBe('no-store');
}

const expectWrong = (response: HttpResponse): void => expect(response.status).toBe(400);
const expectRight = (response: HttpResponse): void => expect(response.status).toBe(200);

describe('login failures of one user from one address', () => {
  test('login failures of one user from one address block even the correct password, but only from this address', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    expectWrong(await attempt({ username, address }));
    expectWrong(await attempt({ username, address }));
    expectLimited(await attempt({ username, address }));
    expectLimited(await attempt({ username, address, right: true }));
    expectRight(await attempt({ username, address: newAddress(), right: true }));
    // A successful login from another address does not lift the limit of this address.
    expectLimited(await attempt({ username, address, right: true }));
  });

  test('login failures of a username that does not exist are limited like the failures of an existing user', async () => {
    await limit({ maxTries: 2 });
    const [username, address] = [stranger(), newAddress()];
    expectWrong(await attempt({ username, address }));
    expectWrong(await attempt({ username, address }));
    expectLimited(await attempt({ username, address }));
  });

  test('login failures of a disabled user are limited like the failures of an active user', async () => {
    await limit({ maxTries: 2 });
    const address = newAddress();
    expectWrong(await attempt({ username: 'dave', address }));
    expectWrong(await attempt({ username: 'dave', address }));
    expectLimited(await attempt({ username: 'dave', address }));
  });

  test('login failures of one user from one address are reset by a successful login', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    for (let round = 0; round < 3; round += 1) {
      expectWrong(await attempt({ username, address }));
      expectRight(await attempt({ username, address, right: true }));
    }
  });

  test('login failures of one user from one address are limited to the same number if the logins are sent in parallel', async () => {
    const { username } = await limit({ maxTries: 2 });
    const address = newAddress();
    const responses = await Promise.all(Array.from({ length: 8 }, () => attempt({ username, address })));
    expect(responses.map(({ status }) => status).toSorted((x, y) => x - y)).toEqual([
      400, 400, 429, 429, 429, 429, 429, 429,
    ]);
  });
});

describe('login failures at one replica', () => {
  test.each(['exists', 'does not exist'])(
    'login failures at one replica count at the other, for a username that %s',
    async (kind) => {
      const { username: existing } = await limit({ maxTries: 2 });
      const username = kind === 'exists' ? existing : stranger();
      await eventually('the other replica limits the username too', async () => {
        // A successful login on the other replica also resets the failures that arrive meanwhile.
        const address = newAddress();
        const since = Date.now();
        expectWrong(await attempt({ username, address }));
        expectWrong(await attempt({ username, address }));
        await published(since);
        // If the limit is not in effect yet, this attempt counts as a failure of a username that does not exist.
        const { status } = await attempt({ username, address, right: true, base: gateway(1) });
        expect(status).toBe(429);
      });
    },
  );

  test('login failures at one replica are reset by a successful login at the other', async () => {
    const { username } = await limit({ maxTries: 3 });
    const address = newAddress();
    for (let round = 0; round < 2; round += 1) expectWrong(await attempt({ username, address }));
    expectRight(await attempt({ username, address, right: true }));
    // Replicas exchange failures and resets at most once a second.
    await sleep(3_000);
    for (let round = 0; round < 2; round += 1) expectWrong(await attempt({ username, address, base: gateway(1) }));
    expectRight(await attempt({ username, address, right: true, base: gateway(1) }));
  });
});

describe('login failures from other addresses', () => {
  // evidence: familiar-address-replicas
  test('login failures from other addresses do not lock a user out at an address from which the user has logged in', async () => {
    const { username } = await limit({ maxTries: 3 });
    const address = newAddress();
    expectRight(await attempt({ username, address, right: true }));
    // Replicas exchange login addresses at most once a second.
    await sleep(3_000);
    const guess = (): Promise<HttpResponse> => attempt({ username, address: newAddress(), base: gateway(1) });
    await eventually('the user must wait at another address', async () => expectLimited(await guess()));
    expectRight(await attempt({ username, address, right: true, base: gateway(1) }));
  });
});

describe('login failures from one address', () => {
  test('login failures from one address are limited across usernames, and a successful login does not reset them', async () => {
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
  test('login failures from one address count for the address that a trusted proxy reports, not for an address that the client sends', async () => {
    await limit({ perAddress: 2 });
    const address = newAddress();
    for (let round = 0; round < 2; round += 1)
      expectWrong(await attempt({ username: stranger(), address: `${newAddress()}, ${address}` }));
    expectLimited(await attempt({ username: stranger(), address: `${newAddress()},${address}` }));
  });

  test("login failures from one address count for the connection's address if no proxy is trusted", async () => {
    await limit({ maxTries: 2 }, []);
    const username = stranger();
    expectWrong(await attempt({ username, address: newAddress() }));
    expectWrong(await attempt({ username, address: newAddress() }));
    expectLimited(await attempt({ username, address: newAddress() }));
  });
});

describe('login failures through one client', () => {
  // evidence: client-login-limit-replicas
  test('login failures through one client are limited across usernames and addresses, and do not block other clients', async () => {
    const { username, client } = await limit({ perClient: 3 });
    for (let round = 0; round < 3; round += 1)
      expectWrong(await attempt({ username: stranger(), address: newAddress(), client }));
    expectLimited(await attempt({ username: stranger(), address: newAddress(), client }));
    expectLimited(await attempt({ username, address: newAddress(), right: true, client }));
    // A client without failures is not limited.
    await restore();
    const other = await limit({ perClient: 3 });
    expectRight(await attempt({ username: other.username, address: newAddress(), right: true, client: other.client }));
  });
});

const tryAs = (client: string, secret: string, address: string, base = gateway()): Promise<HttpResponse> =>
  postForm(
    { ...passwordForm('alice'), client_id: client, client_secret: secret },
    { base, headers: { 'x-forwarded-for': address } },
  );

describe('guesses at a client secret', () => {
  test.each(['exists', 'does not exist'])(
    'guesses at a client secret are limited per address, for a client that %s',
    async (kind) => {
      const { client: existing } = await limit({ maxTries: 2 });
      const client = kind === 'exists' ? existing : stranger();
      let address = newAddress();
      const guess = async (): Promise<void> => expect((await tryAs(client, 'a guess', address)).status).toBe(401);
      for (let round = 0; round < 2; round += 1) await guess();
      const refused = await tryAs(client, clientSecret, address);
      expect({ status: refused.status, ...(refused.json as OAuthProblem) }).toMatchObject({
        status: 429,
        error: 'invalid_client',
      });
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d{0,2}$/);
      expect((await tryAs(client, clientSecret, newAddress())).status).toBe(kind === 'exists' ? 200 : 401);
      await eventually('the other replica limits the guesses too', async () => {
        // A successful login on the other replica also resets the failures that arrive meanwhile.
        address = newAddress();
        const since = Date.now();
        for (let round = 0; round < 2; round += 1) await guess();
        await published(since);
        expect((await tryAs(client, clientSecret, address, gateway(1))).status).toBe(429);
      });
    },
  );
});
