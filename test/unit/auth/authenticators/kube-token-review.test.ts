import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { gatewayAuthenticator } from '../../../../src/auth/authenticators/index.ts';
import { expiryOf, issuerOf, tokenReview } from '../../../../src/auth/authenticators/kube-token-review.ts';
import { fingerprint } from '../../../../src/tokens/jwt.ts';
import type { Source, TokenAuthenticator } from '../../../../src/auth/authenticators/authenticator.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { MemoryCluster, type MemoryClient } from '../../../fakes/cluster.ts';
import { craftJWT, readJWT } from '../../../fakes/jwt.ts';
import { face, resourcePath } from '../../../labs/http.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const path = '/apis/authentication.k8s.io/v1/tokenreviews';
const issuer = 'https://kubernetes.default.svc';
const tokenOf = (subject: string): string => craftJWT({ alg: 'RS256' }, { iss: issuer, sub: subject });
const robot = { username: 'system:serviceaccount:default:robot', groups: ['system:serviceaccounts'] };

interface Lab {
  readonly authenticate: (token: string, source?: Source) => ReturnType<TokenAuthenticator>;
  readonly client: MemoryClient;
  readonly reviews: () => number;
}

function lab(status: unknown, audiences: readonly string[] = []): Lab {
  const cluster = new MemoryCluster();
  cluster.respond(path, () => (status === undefined ? {} : { status }));
  const client = cluster.client();
  const review = tokenReview(
    client,
    async () => audiences,
    () => Date.now(),
  );
  return {
    authenticate: (token, source = '192.0.2.1') => review(token, source),
    client,
    reviews: () => client.requestsTo('POST', '/tokenreviews').length,
  };
}

/** Delays every review until the returned function is called. */
function hold(client: MemoryClient): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  client.before = () => promise;
  return resolve;
}

const refusal = { code: 401, headers: { 'WWW-Authenticate': expect.stringContaining('error="invalid_token"') } };

describe('a token that kube-apiserver accepts', () => {
  test('a token that kube-apiserver accepts authenticates its user with all fields of the review and the group system:authenticated', async () => {
    const { authenticate } = lab({ authenticated: true, user: { ...robot, uid: '42', extra: { pod: ['a', 'b'] } } });
    expect(await authenticate(tokenOf('robot'))).toEqual({
      username: robot.username,
      uid: '42',
      groups: ['system:serviceaccounts', 'system:authenticated'],
      extra: { pod: ['a', 'b'] },
      via: 'token-review',
    });
  });

  test.each([
    ['with the known audiences', ['https://platform.example', issuer]],
    ['without audiences if none are known', []],
  ])('a token that kube-apiserver accepts is reviewed %s', async (_, audiences) => {
    const { authenticate, client } = lab({ authenticated: true, user: robot }, audiences);
    const token = tokenOf('robot');
    await authenticate(token);
    expect(client.requestsTo('POST', path)[0]?.body).toEqual({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
    });
  });

  test('a token that kube-apiserver accepts is reviewed once for concurrent requests', async () => {
    const { authenticate, reviews } = lab({ authenticated: true, user: robot });
    const users = await Promise.all(Array.from({ length: 40 }, () => authenticate(tokenOf('robot'))));
    expect(new Set(users).size).toBe(1);
    expect(reviews()).toBe(1);
  });
});

test.each([
  ['its review rejects the token', { authenticated: false }],
  ['its review rejects the token with a reason', { authenticated: false, error: 'the token has expired' }],
  ['its review accepts the token without a user', { authenticated: true }],
  [
    'its review accepts the token for a user without a name',
    { authenticated: true, user: { groups: ['system:masters'] } },
  ],
  ['`authenticated` of its review is not a boolean', { authenticated: 'true', user: robot }],
  [
    'its review accepts the token for other audiences than requested',
    { authenticated: true, user: robot, audiences: ['vault'] },
  ],
  ['its review has no status', undefined],
])('a token gets 401 if %s', async (_, status) => {
  const { authenticate } = lab(status, ['https://platform.example', issuer]);
  await expect(authenticate(tokenOf('robot'))).rejects.toMatchObject(refusal);
});

test.each<[string, string[], string[] | undefined]>([
  ['one of several requested audiences', ['https://platform.example', issuer], [issuer]],
  ['a requested audience and others', [issuer], ['vault', issuer]],
  ['no audience in particular', [issuer], []],
  ['any audience that kube-apiserver accepts by default', [], ['vault']],
])('a reviewed token for %s is accepted', async (_, wanted, audiences) => {
  const { authenticate } = lab({ authenticated: true, user: robot, audiences }, wanted);
  await expect(authenticate(tokenOf('robot'))).resolves.toMatchObject({ username: robot.username });
});

test('a reviewed token of a user without groups has only the group system:authenticated', async () => {
  const { authenticate } = lab({ authenticated: true, user: { username: 'robot' } });
  expect(await authenticate(tokenOf('robot'))).toEqual({
    username: 'robot',
    groups: ['system:authenticated'],
    via: 'token-review',
  });
});

test.each([
  [1_800_000_000, 1_800_000_000_000],
  [1_800_000_000.5, 1_800_000_000_500],
  ['1800000000', undefined],
  [undefined, undefined],
])('the expiry of a reviewed token with the claim exp %j is %j', (exp, expected) => {
  expect(expiryOf(craftJWT({ alg: 'RS256' }, { exp }))).toBe(expected);
});

test('a reviewed token that is not a JWT has no known expiry', () => {
  expect(expiryOf('opaque')).toBeUndefined();
});

describe('review results are cached', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([
    ['accepted', { authenticated: true, user: robot }, 10],
    ['rejected', { authenticated: false }, 5],
  ])('review results are cached when the token was %s', async (_, status, seconds) => {
    const { authenticate, reviews } = lab(status);
    const attempt = (): Promise<unknown> => authenticate(tokenOf('robot')).catch(() => undefined);
    await attempt();
    jest.advanceTimersByTime(seconds * 1_000 - 100);
    await attempt();
    expect(reviews()).toBe(1);
    jest.advanceTimersByTime(200);
    await attempt();
    expect(reviews()).toBe(2);
  });
});

test('a token is cached by its fingerprint for 10 s after it was accepted, as measured by the monotonic clock', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(1_000);
  try {
    const cluster = new MemoryCluster();
    cluster.respond(path, () => ({ status: { authenticated: true, user: robot } }));
    const review = tokenReview(cluster.client(), async () => []);
    const isKnown = (): boolean => review.known?.(fingerprint(tokenOf('robot'))) !== undefined;
    expect(isKnown()).toBe(false);
    await review(tokenOf('robot'), '192.0.2.1');
    clock.mockReturnValue(10_999);
    expect(isKnown()).toBe(true);
    clock.mockReturnValue(11_001);
    expect(isKnown()).toBe(false);
  } finally {
    clock.mockRestore();
  }
});

describe('a failure of kube-apiserver', () => {
  test.each([
    ['no connection', unreachable(new Error('reset'))],
    ...[400, 401, 403, 404, 409, 422, 429, 500, 503].map((code): [string, KubeError] => [
      `status ${code}`,
      new KubeError(code, { message: 'no' }),
    ]),
  ])('a failure of kube-apiserver is reported as 503 instead of 401, and is not cached: %s', async (_, failure) => {
    const { authenticate, client, reviews } = lab({ authenticated: true, user: robot });
    client.before = () => {
      throw failure;
    };
    await expect(authenticate(tokenOf('robot'))).rejects.toMatchObject({ code: 503, cause: failure });
    client.before = () => undefined;
    await expect(authenticate(tokenOf('robot'))).resolves.toMatchObject({ username: robot.username });
    expect(reviews()).toBe(2);
  });
});

const forged = (index: number): string => tokenOf(`nobody-${index}`);
/** Returns the subjects of the reviewed tokens. */
const subjects = (client: MemoryClient): unknown[] =>
  client
    .requestsTo('POST', path)
    .map(({ body }) => readJWT((body as { spec: { token: string } }).spec.token).claims['sub']);
const strange = (index: number): string => craftJWT({ alg: 'RS256' }, { iss: 'https://x', sub: `x-${index}` });

describe('when many unknown tokens arrive', () => {
  test('only 32 of many unknown tokens are reviewed concurrently, and addresses with waiting tokens take turns', async () => {
    const { authenticate, client, reviews } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 80 }, (_, index) => authenticate(forged(index), `192.0.2.${60 + (index % 8)}`));
    await settle();
    const good = authenticate(tokenOf('robot'), '192.0.2.2');
    await settle();
    expect(reviews()).toBe(32);
    release();
    await Promise.all([...all, good]);
    // Each of the eight addresses can get one more review before the review of the robot token.
    expect(subjects(client).indexOf('robot')).toBeLessThan(32 + 9);
  });

  test.each([
    ['one address has 4 concurrent reviews', 4, () => '192.0.2.66'],
    ['one /48 has 8 concurrent reviews', 8, (index: number) => `2001:db8:0:${index.toString(16)}::1`],
  ])('tokens of another address do not wait when %s', async (_, share, from) => {
    const { authenticate, client, reviews } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 40 }, (__, index) => authenticate(forged(index), from(index)));
    await settle();
    expect(reviews()).toBe(share);
    const good = authenticate(tokenOf('robot'), '192.0.2.2');
    await settle();
    expect(subjects(client)[share]).toBe('robot');
    release();
    await Promise.all([...all, good]);
  });

  test.each([
    ['one client', () => '198.51.100.66'],
    ['one /64', (index: number) => `2001:db8::${index + 1}`],
  ])('unknown tokens of %s do not delay tokens of another client behind the same proxy', async (_, from) => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const arrived: string[] = [];
    const counted: TokenAuthenticator = (token, source) => {
      arrived.push(token);
      return authenticate(token, source);
    };
    const { app } = face({
      settings: { trustedProxies: ['192.0.2.1'] },
      authenticator: gatewayAuthenticator([counted]),
    });
    const get = (token: string, source: string): Promise<AppResponse> =>
      sendRequest(app, resourcePath, { headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': source } });
    const arrival = async (count: number): Promise<void> => {
      while (arrived.length < count) await settle();
      await settle();
    };
    const release = hold(client);
    const all = Array.from({ length: 50 }, (__, index) => get(forged(index), from(index)));
    await arrival(50);
    const good = get(tokenOf('robot'), '198.51.100.2');
    await arrival(51);
    release();
    expect((await Promise.all([...all, good])).map(({ status }) => status)).toEqual(
      Array.from({ length: 51 }, () => 200),
    );
    expect(subjects(client).indexOf('robot')).toBe(4);
  });

  test.each([
    ['400 unknown tokens of one address', 400, 4, () => '192.0.2.66'],
    ['800 unknown tokens of one /48', 800, 8, (index: number) => `2001:db8:0:${index.toString(16)}::1`],
  ])('the first %s wait, and further tokens are rejected with 429', async (_, waiting, share, from) => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const active = Array.from({ length: share }, (__, index) => authenticate(tokenOf(`first-${index}`), from(index)));
    await settle();
    const settled = Promise.allSettled(
      Array.from({ length: waiting + 30 }, (__, index) => authenticate(forged(index), from(index))),
    );
    await settle();
    const good = authenticate(tokenOf('robot'), '192.0.2.2');
    release();
    await expect(good).resolves.toMatchObject({ username: robot.username });
    await expect(Promise.all(active)).resolves.toHaveLength(share);
    const refusals = (await settled).filter((one) => one.status === 'rejected');
    expect(refusals).toHaveLength(30);
    expect(refusals[0]?.reason).toMatchObject({
      code: 429,
      message: `token reviews: your share of ${waiting} waiting requests is in use; please try again later`,
    });
  });

  test('further unknown tokens are rejected with 429 while 2,000 unknown tokens wait, except tokens of another address', async () => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 2_100 }, (_, index) => authenticate(forged(index), `192.0.2.${index % 25}`));
    const settled = Promise.allSettled(all);
    await settle();
    const good = authenticate(tokenOf('robot'), '192.0.2.200');
    await settle();
    release();
    await expect(good).resolves.toMatchObject({ username: robot.username });
    const refusals = (await settled).filter((one) => one.status === 'rejected');
    expect(refusals).toHaveLength(2_100 - 32 - 1_999);
    expect(refusals[0]?.reason).toMatchObject({ code: 429, headers: { 'Retry-After': '1' } });
  });

  test('neither tokens of another address nor rechecks of streams are rejected while unknown tokens of four /48s fill the queue', async () => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const settled = Promise.allSettled(
      Array.from({ length: 2_400 }, (_, index) =>
        authenticate(forged(index), `2001:db8:${index % 4}:${index.toString(16)}::1`),
      ),
    );
    await settle();
    const good = ['192.0.2.200', { streamsOf: robot.username }].map((source) => authenticate(tokenOf('robot'), source));
    await settle();
    release();
    await expect(Promise.all(good)).resolves.toMatchObject([{ username: robot.username }, {}]);
    const refusals = (await settled).filter((one) => one.status === 'rejected');
    expect(refusals[0]?.reason).toMatchObject({ code: 429, headers: { 'Retry-After': '1' } });
  });

  test.each([
    ['the issuer of this server', forged],
    ['another issuer', strange],
  ])(
    'all 1,000 streams of a user are rechecked while unknown tokens wait, each stream with a different token of %s',
    async (_, token) => {
      const { authenticate, client } = lab({ authenticated: true, user: robot });
      client.ownIssuer = issuer;
      const release = hold(client);
      const all = Array.from({ length: 1_000 }, (__, index) =>
        authenticate(token(index), { streamsOf: robot.username }),
      );
      const settled = Promise.allSettled(all);
      await settle();
      release();
      expect((await settled).filter(({ status }) => status === 'rejected')).toEqual([]);
    },
  );

  test('rechecks of streams do not wait for the slots of unknown tokens', async () => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 40 }, (_, index) => authenticate(forged(index), `192.0.2.${index}`));
    await settle();
    const recheck = authenticate(tokenOf('robot'), { streamsOf: robot.username });
    await settle();
    expect(subjects(client)[32]).toBe('robot');
    release();
    await expect(Promise.all([...all, recheck])).resolves.toHaveLength(41);
  });

  // evidence: token-review-slots
  test('tokens of other issuers do not use the review slots for tokens with the issuer of this server', async () => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    client.ownIssuer = issuer;
    const release = hold(client);
    const all = Array.from({ length: 50 }, (_, index) => authenticate(strange(index), `192.0.2.${index % 8}`));
    const good = Array.from({ length: 32 }, (_, index) =>
      authenticate(tokenOf(`robot-${index}`), `192.0.2.${index % 8}`),
    );
    await settle();
    expect(subjects(client).filter((subject) => String(subject).startsWith('x-'))).toHaveLength(4);
    expect(subjects(client).filter((subject) => String(subject).startsWith('robot-'))).toHaveLength(32);
    release();
    await expect(Promise.all([...all, ...good])).resolves.toHaveLength(82);
  });

  test('a token that is already under review takes no second slot', async () => {
    const { authenticate, client, reviews } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 64 }, (_, index) => authenticate(tokenOf(`robot-${index % 2}`)));
    await settle();
    expect(reviews()).toBe(2);
    release();
    await expect(Promise.all(all)).resolves.toHaveLength(64);
  });

  test('a token whose review waits in the queue of one address is reviewed at once when another address without reviews sends it', async () => {
    const { authenticate, client, reviews } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 4 }, (_, index) => authenticate(forged(index), '192.0.2.66'));
    const waiting = authenticate(tokenOf('robot'), '192.0.2.66');
    await settle();
    const idle = authenticate(tokenOf('robot'), '192.0.2.2');
    await settle();
    expect(subjects(client)[4]).toBe('robot');
    release();
    await expect(Promise.all([...all, waiting, idle])).resolves.toHaveLength(6);
    // The first review also served the waiting request.
    expect(reviews()).toBe(5);
  });

  test('a request from an address with a full review queue gets 429, while the same token from an idle address is authenticated', async () => {
    const { authenticate, client } = lab({ authenticated: true, user: robot });
    const release = hold(client);
    const all = Array.from({ length: 404 }, (_, index) => authenticate(forged(index), '192.0.2.66'));
    await settle();
    const [refused, good] = await Promise.allSettled([
      authenticate(tokenOf('robot'), '192.0.2.66'),
      (async () => {
        const user = authenticate(tokenOf('robot'), '192.0.2.2');
        await settle();
        release();
        return await user;
      })(),
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 429 } });
    expect(good).toMatchObject({ status: 'fulfilled', value: { username: robot.username } });
    await expect(Promise.all(all)).resolves.toHaveLength(404);
  });

  test('cached results for forged tokens do not evict cached results for valid tokens', async () => {
    const cluster = new MemoryCluster();
    cluster.respond(path, ({ spec }) => {
      const { claims } = readJWT((spec as { token: string }).token);
      return { status: { authenticated: claims['sub'] === 'robot', user: robot } };
    });
    const client = cluster.client();
    const authenticate = tokenReview(client, async () => []);
    await authenticate(tokenOf('robot'), '');
    for (let i = 0; i < 10_001; i += 1) await authenticate(forged(i), '').catch(() => undefined);
    const before = client.requests.length;
    await authenticate(tokenOf('robot'), '');
    expect(client.requests).toHaveLength(before);
  });
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token that is not a JWT', () => {
  const payload = part({ iss: issuer });

  test.each([
    ['an opaque token', 'sha256~abcdef'],
    ['two parts', `${part({ alg: 'RS256' })}.${payload}`],
    ['four parts', `${part({ alg: 'RS256' })}.${payload}.c2ln.c2ln`],
    ['no signature', `${part({ alg: 'RS256' })}.${payload}.`],
    ['no algorithm', `${part({})}.${payload}.c2ln`],
    ['no issuer', `${part({ alg: 'RS256' })}.${part({ sub: 'x' })}.c2ln`],
    ['an issuer that is not a string', `${part({ alg: 'RS256' })}.${part({ iss: [issuer] })}.c2ln`],
    ['a signature that begins with a character outside base64url', `${part({ alg: 'RS256' })}.${payload}.+c2ln`],
    ['a header that is null', `${part(null)}.${payload}.c2ln`],
    ['a payload that is text', `${part({ alg: 'RS256' })}.${part('x')}.c2ln`],
    ['invalid JSON', `${Buffer.from('{').toString('base64url')}.${payload}.c2ln`],
    ['base64 instead of base64url', `${part({ alg: 'RS256' })}.${payload}.c+/=`],
    ['more than 16 KiB', craftJWT({ alg: 'RS256' }, { iss: issuer, padding: 'x'.repeat(20_000) })],
  ])('a token that is not a JWT never reaches kube-apiserver: %s', async (_, token) => {
    const { authenticate, reviews } = lab({ authenticated: true, user: robot });
    expect(await authenticate(token)).toBeUndefined();
    expect(reviews()).toBe(0);
  });

  test('issuerOf() returns undefined for a token longer than 16 KiB', () => {
    const token = tokenOf('robot');
    expect([16_384, 16_385].map((length) => issuerOf(token.padEnd(length, 'A')))).toEqual([issuer, undefined]);
  });

  test('issuerOf() returns undefined for random text and never throws', () => {
    fc.assert(fc.property(fc.string(), (text) => issuerOf(text) === undefined));
    fc.assert(
      fc.property(fc.array(fc.json(), { minLength: 3, maxLength: 3 }), (parts) => {
        const token = parts.map((text) => Buffer.from(text).toString('base64url')).join('.');
        expect(['string', 'undefined']).toContain(typeof issuerOf(token));
      }),
    );
  });
});
