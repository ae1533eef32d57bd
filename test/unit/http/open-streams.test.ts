import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { kapisRoutes, apisRoutes } from '../../../src/resources/routes.ts';
import { invalidToken, serviceUnavailable, tooManyRequests, unauthorized } from '../../../src/runtime/errors.ts';
import { authenticated } from '../../../src/http/access.ts';
import { OpenStreams } from '../../../src/http/open-streams.ts';
import { gatewayAuthenticator, tokenReview, type Authenticator } from '../../../src/auth/authenticators/index.ts';
import type { UserInfo } from '../../../src/auth/user.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { craftJWT } from '../../fakes/jwt.ts';
import { emptyCluster, fakeResource, node } from '../../labs/resources.ts';
import { settle } from '../../labs/cluster-fakes.ts';
import { face } from '../../labs/http.ts';

const resource = fakeResource();
resource.store.replace([node('a')], 10);
const paths = ['/kapis/resources.platform.io/v1alpha3/nodes', '/apis/resources.platform.io/v1alpha3/nodes'];

let openStreams: OpenStreams;
let authenticate: () => UserInfo | undefined;
/** The API group that each group of users is allowed to read; `*` means all API groups. */
let rights: Record<string, string>;
/** The authorizer waits for this promise before it responds. */
let responses: Promise<void>;
beforeEach(() => {
  openStreams = new OpenStreams();
  responses = Promise.resolve();
  rights = { readers: '*', halves: '' };
});

const member = (...groups: string[]): UserInfo => ({ username: 'alice', groups, via: 'token' });

/** Opens a watch of a user in the group readers. */
async function open(
  path: string,
  sessionID?: string,
  via: UserInfo['via'] = 'token',
): Promise<{ response: Promise<AppResponse>; reviews: () => number }> {
  let reviews = 0;
  authenticate = () => ({ ...member('readers'), via, ...(sessionID === undefined ? {} : { sessionID }) });
  const before = openStreams.size;
  const authorizer = {
    authorize: async ({ groups }: UserInfo, attributes: object) => {
      reviews += 1;
      await responses;
      const wanted = 'group' in attributes ? attributes.group : undefined;
      return { allowed: groups.some((group) => rights[group] === '*' || rights[group] === wanted), reason: '' };
    },
  };
  const authenticator: Authenticator = async () => authenticate();
  const deps = { authorizer, resources: [resource], ...emptyCluster };
  const { app } = face({ routes: [...kapisRoutes(deps), ...apisRoutes(deps)], authenticator, authorizer, openStreams });
  const response = sendRequest(app, `${path}?watch=true&resourceVersion=10`);
  await settle();
  expect(openStreams.size).toBe(before + 1);
  return { response, reviews: () => reviews };
}

const change = async (next: () => UserInfo | undefined): Promise<void> => {
  authenticate = next;
  await openStreams.recheck();
  await settle();
};

describe.each(paths)('an open watch of %s', (path) => {
  test.each<[string, UserInfo]>([
    ['no group', member()],
    ['another group', member('writers')],
    ['a group that is allowed to read only one of the two APIs', member('halves')],
  ])('an open watch ends with 403 at once if its user now has %s', async (_, user) => {
    const { response } = await open(path);
    // Below /kapis only the right to the core group is required.
    if (path.startsWith('/kapis')) rights = { readers: '*' };
    await change(() => user);
    expect((await response).json()).toMatchObject({ type: 'ERROR', object: { code: 403, reason: 'Forbidden' } });
    expect(openStreams.size).toBe(0);
  });

  test.each<[string, () => UserInfo | undefined]>([
    [
      'is rejected',
      () => {
        throw unauthorized();
      },
    ],
    ['no longer identifies a user', () => undefined],
  ])('an open watch ends if its credential %s', async (_, next) => {
    const { response } = await open(path);
    await change(next);
    expect(await response).toMatchObject({ status: 200, text: '' });
  });

  test.each([serviceUnavailable('not now'), tooManyRequests('no slot', 1)])(
    'an open watch continues when a recheck fails with %p',
    async (refusal) => {
      const { response } = await open(path);
      responses = Promise.reject(refusal);
      responses.catch(() => undefined);
      await change(() => member('readers', 'writers'));
      expect(openStreams.size).toBe(1);
      responses = Promise.resolve();
      await change(() => member());
      expect((await response).json()).toMatchObject({ type: 'ERROR', object: { code: 403 } });
    },
  );

  test('an open watch continues if its changed user is still allowed to read, and later rechecks use the changed user', async () => {
    const { response, reviews } = await open(path);
    const before = reviews();
    await change(() => member('readers'));
    expect(reviews()).toBe(before);
    await change(() => {
      throw serviceUnavailable('the sessions are not known now');
    });
    expect(reviews()).toBe(before);
    await change(() => member('readers', 'writers'));
    expect(reviews()).toBeGreaterThan(before);
    expect(openStreams.size).toBe(1);
    // The watch ends as soon as the changed user loses the right.
    await change(() => member('writers'));
    expect((await response).json()).toMatchObject({ type: 'ERROR', object: { code: 403 } });
  });
});

test('a watch whose user changes while the watch starts is rechecked at once', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  try {
    const { promise, resolve } = Promise.withResolvers<void>();
    responses = promise;
    const { response } = await open(paths[0] as string);
    await change(() => member());
    resolve();
    expect((await response).json()).toMatchObject({ object: { code: 403 } });
  } finally {
    jest.useRealTimers();
  }
});

test('revoking a session ends only the watches of that session', async () => {
  const path = paths[0] as string;
  const [first, second] = [await open(path, 'one'), await open(path, 'one')];
  const other = await open(path, 'two');
  const rest = await open(path);
  openStreams.endSession('none');
  expect(openStreams.size).toBe(4);
  openStreams.endSession('one');
  expect(await Promise.all([first.response, second.response])).toMatchObject([{ status: 200 }, { status: 200 }]);
  expect(openStreams.size).toBe(2);
  openStreams.endSession('one');
  const again = await open(path, 'one');
  openStreams.endSession('two');
  expect(await other.response).toMatchObject({ status: 200, text: '' });
  expect(openStreams.size).toBe(2);
  openStreams.endSession('one');
  expect(await again.response).toMatchObject({ status: 200, text: '' });
  expect(openStreams.size).toBe(1);
  openStreams.endAll(0);
  await rest.response;
});

test('a watch that starts after the server has closed all streams gets 503', async () => {
  openStreams.endAll(0);
  authenticate = () => member('readers');
  const authorizer = { authorize: async () => ({ allowed: true, reason: '' }) };
  const { app } = face({
    routes: kapisRoutes({ authorizer, resources: [resource], ...emptyCluster }),
    authenticator: async () => authenticate(),
    authorizer,
    openStreams,
  });
  const response = await sendRequest(app, `${paths[0]}?watch=true&resourceVersion=10`);
  expect(response.json()).toMatchObject({ code: 503, details: { retryAfterSeconds: 1 } });
});

describe('all open watches', () => {
  test.each([0, 5])('all open watches end within %i ms when the server drains', async (spread) => {
    const { response } = await open(paths[0] as string);
    openStreams.endAll(spread);
    expect(await response).toMatchObject({ status: 200, text: '' });
  });
});

test('all open watches of a user are rechecked together every ten seconds', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  try {
    const opened: Awaited<ReturnType<typeof open>>[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      opened.push(await open(paths[turn % 2] as string));
      await jest.advanceTimersByTimeAsync(1_700);
    }
    const reviews = (): number[] => opened.map((one) => one.reviews());
    const before = reviews();
    let rechecks = 0;
    for (let elapsed = 0; elapsed < 30_000; elapsed += 100) {
      const now = reviews();
      await jest.advanceTimersByTimeAsync(100);
      await settle();
      const changed = reviews().filter((count, index) => count !== now[index]).length;
      expect([0, opened.length]).toContain(changed);
      if (changed > 0) rechecks += 1;
    }
    expect(rechecks).toBe(3);
    expect(reviews().every((count, index) => count > (before[index] ?? 0))).toBe(true);
    rights = {};
    await jest.advanceTimersByTimeAsync(10_100);
    for (const { response } of opened) expect((await response).text).toContain('"code":403');
    expect([openStreams.size, jest.getTimerCount()]).toEqual([0, 0]);
  } finally {
    jest.useRealTimers();
  }
});

test('an open watch with a token of kube-apiserver ends within ten seconds after kube-apiserver rejects the token', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  try {
    const { response } = await open(paths[0] as string);
    const reviewed = await open(paths[0] as string, undefined, 'token-review');
    authenticate = () => {
      throw invalidToken();
    };
    await jest.advanceTimersByTimeAsync(10_100);
    await settle();
    // The other watch stays open: its session reports a revocation, so its token is not authenticated again.
    expect(openStreams.size).toBe(1);
    expect((await reviewed.response).status).toBe(200);
    openStreams.endAll(0);
    await jest.advanceTimersByTimeAsync(1);
    await response;
  } finally {
    jest.useRealTimers();
  }
});

const tokenOf = (sub: string): string => craftJWT({ alg: 'RS256' }, { iss: 'https://kubernetes.default.svc', sub });

test('an open watch with a rejected token ends even while reviews of forged tokens fill the queue of its address', async () => {
  const reviewPath = '/apis/authentication.k8s.io/v1/tokenreviews';
  const cluster = new MemoryCluster();
  let isDeleted = false;
  cluster.respond(reviewPath, () => ({ status: { authenticated: !isDeleted, user: { username: 'robot' } } }));
  const client = cluster.client();
  let now = 1_000;
  const review = tokenReview(
    client,
    async () => [],
    () => now,
  );
  const path = paths[0] as string;
  const { app } = face({
    routes: kapisRoutes({
      authorizer: { authorize: async () => ({ allowed: true, reason: '' }) },
      resources: [resource],
      ...emptyCluster,
    }),
    authenticator: gatewayAuthenticator([review]),
    openStreams,
  });
  const response = sendRequest(app, `${path}?watch=true&resourceVersion=10`, {
    headers: { authorization: `Bearer ${tokenOf('robot')}` },
  });
  await settle();
  expect(openStreams.size).toBe(1);

  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  client.before = ({ body }) => {
    const { token } = (body as { spec: { token: string } }).spec;
    return token === tokenOf('robot') ? undefined : held;
  };
  const forged = Array.from({ length: 404 }, (_, index) => review(tokenOf(`nobody-${index}`), '192.0.2.1'));
  const settled = Promise.allSettled(forged);
  isDeleted = true;
  // The address also sends the token of the watch.
  now += 10_001;
  await settle();
  await expect(review(tokenOf('robot'), '192.0.2.1')).rejects.toMatchObject({ code: 429 });
  await openStreams.recheck();
  await settle();
  const remaining = openStreams.size;
  openStreams.endAll(0);
  release();
  await settled;
  expect(remaining).toBe(0);
  expect((await response).status).toBe(200);
});

test.each<[string, () => Promise<void> | void]>([
  ['its session is revoked', () => openStreams.endSession('s')],
  ['its user is deleted', () => change(() => undefined)],
  ['the server drains', () => openStreams.endAll(0)],
])('a stream that still waits for its access review gets 503 if %s', async (_, end) => {
  const { promise: reviewed, resolve: response } = Promise.withResolvers<void>();
  authenticate = () => ({ ...member('readers'), sessionID: 's' });
  let passed = 0;
  const { app } = face({
    authenticator: async () => authenticate(),
    authorizer: {
      authorize: async () => {
        await reviewed;
        return { allowed: true, reason: '' };
      },
    },
    openStreams,
    gateway: {
      prefixes: new Set(['api']),
      access: authenticated,
      handler: (_req, res) => void res.end(String((passed += 1))),
      ownIdentity: async () => ({ username: 'the-server' }),
    },
  });
  const pending = sendRequest(app, '/api/v1/nodes?watch=true', { headers: { 'impersonate-user': 'bob' } });
  await settle();
  await end();
  await new Promise((resolve) => setTimeout(resolve, 5));
  response();
  expect([(await pending).status, passed]).toEqual([503, 0]);
  expect(openStreams.size).toBe(0);
});
