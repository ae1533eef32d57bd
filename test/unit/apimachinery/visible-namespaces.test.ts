import { beforeEach, expect, test } from '@jest/globals';
import type { Attributes, ResourceAttributes } from '../../../src/auth/authorizers/authorizer.ts';
import type { RequestContext, RequestInfo } from '../../../src/http/route.ts';
import { allowedIn, sameNamespaces, visibleNamespaces } from '../../../src/apimachinery/visible-namespaces.ts';

const pods = { underlying: { group: '', version: 'v1', resource: 'pods' }, namespaced: true };
const namespacesOfAnotherGroup = {
  underlying: { group: 'example.com', version: 'v1', resource: 'namespaces' },
  namespaced: false,
};
const nodes = { underlying: { group: '', version: 'v1', resource: 'nodes' }, namespaced: false };

/** `verb namespace/name`, with '*' for all namespaces. */
let allowed: Set<string>;
let reviewed: string[];
let maxOpen: number;
let granted: string[];
let synced: boolean;
beforeEach(() => {
  allowed = new Set();
  reviewed = [];
  maxOpen = 0;
  granted = [];
  synced = true;
});

async function visible(of: typeof pods, info: Partial<RequestInfo>, query = ''): Promise<string[] | undefined> {
  let open = 0;
  const found = await visibleNamespaces(
    {
      granted: {
        of: () => new Map(granted.map((name) => [name, { count: 1, lastChange: 1, changedAt: 0 }])),
        hasSynced: () => synced,
      },
      authorizer: {
        async authorize(_, attributes: Attributes) {
          const { verb, namespace, name } = attributes as ResourceAttributes;
          const key = `${verb} ${namespace || '*'}${name === '' ? '' : `/${name}`}`;
          reviewed.push(key);
          maxOpen = Math.max(maxOpen, (open += 1));
          await new Promise((resolve) => setImmediate(resolve));
          open -= 1;
          return { allowed: allowed.has(key), reason: '' };
        },
      },
    },
    {
      user: { username: 'anna', groups: [], via: 'token' },
      info: { verb: 'list', namespace: '', name: '', ...info },
      query: new URLSearchParams(query),
    } as unknown as RequestContext,
    of,
  );
  return found && [...found].toSorted();
}

test('a user who is allowed to list pods in all namespaces sees all namespaces', async () => {
  allowed.add('list *');
  granted = ['a'];
  expect(await visible(pods, {})).toBeUndefined();
  expect(reviewed).toEqual(['list *']);
});

test('a request for one namespace, one object or a cluster-scoped resource requires only permission for that scope', async () => {
  allowed = new Set(['list a', 'get a/p', 'list *']);
  expect(await visible(pods, { namespace: 'a' })).toBeUndefined();
  expect(await visible(pods, { verb: 'get', namespace: 'a', name: 'p' })).toBeUndefined();
  expect(await visible(nodes, {})).toBeUndefined();
  allowed.clear();
  granted = ['a'];
  for (const [of, info] of [
    [pods, { namespace: 'a' }],
    [pods, { verb: 'get', namespace: 'a', name: 'p' }],
    [nodes, {}],
  ] as const)
    await expect(visible(of, info)).rejects.toMatchObject({ code: 403 });
});

test.each<[typeof pods, Partial<RequestInfo>]>([
  [pods, { namespace: 'a' }],
  [pods, { verb: 'watch', namespace: 'a' }],
  [pods, { verb: 'get', namespace: 'a', name: 'p' }],
  [pods, { verb: 'get', name: 'p' }],
  [nodes, {}],
  [nodes, { verb: 'get', name: 'n' }],
  // A Role can name this resource, but kube-apiserver ignores Roles for cluster-scoped resources.
  [namespacesOfAnotherGroup, {}],
  [namespacesOfAnotherGroup, { name: 'b' }],
])('a role in another namespace does not allow access to %j %j', async (of, info) => {
  granted = ['b'];
  const { verb = 'list', name = '' } = info;
  const key = `${verb} b${name === '' ? '' : `/${name}`}`;
  allowed = new Set([key, `${verb} b/b`, 'get b/b']);
  await expect(visible(of, info)).rejects.toMatchObject({ code: 403 });
  expect(reviewed).toHaveLength(1);
});

test('an anonymous request for visible namespaces gets 401', async () => {
  const request = { user: undefined, info: { verb: 'list', namespace: '', name: '' }, query: new URLSearchParams() };
  const access = {
    granted: { of: () => new Map(), hasSynced: () => true },
    authorizer: { authorize: async () => ({ allowed: true, reason: '' }) },
  };
  const found = visibleNamespaces(access, request as unknown as RequestContext, pods);
  await expect(found).rejects.toMatchObject({ code: 401 });
});

test('namespaces are visible if a role in them allows the verb `get` for namespaces', async () => {
  const namespaces = { underlying: { group: '', version: 'v1', resource: 'namespaces' }, namespaced: false };
  granted = ['a', 'b', 'c'];
  allowed = new Set(['get a/a', 'get c/c', 'watch b/b']);
  expect(await visible(namespaces, {})).toEqual(['a', 'c']);
  expect(await visible(namespaces, { verb: 'watch' })).toEqual(['b']);
  expect(await visible(namespaces, { name: 'c' })).toEqual(['c']);
  await expect(visible(namespaces, { name: 'b' })).rejects.toMatchObject({ code: 403 });
  expect(reviewed.filter((key) => key.includes('list'))).toEqual(['list *', 'list */c', 'list */b', 'list */b']);
});

test('candidate namespaces are confirmed by access reviews with bounded concurrency', async () => {
  granted = Array.from({ length: 100 }, (_, index) => `n${index}`);
  allowed = new Set(['list n7', 'list n77']);
  expect(await visible(pods, {})).toEqual(['n7', 'n77']);
  expect(reviewed).toHaveLength(101);
  expect(maxOpen).toBe(32);
});

test('a request for one object name in all visible namespaces is reviewed for that name in each namespace', async () => {
  granted = ['a', 'b'];
  allowed = new Set(['watch b/p']);
  expect(await visible(pods, { verb: 'watch', name: 'p' })).toEqual(['b']);
});

test('a user without any visible namespace gets the same 403 as for a cluster-wide request', async () => {
  granted = ['a'];
  await expect(visible(pods, {})).rejects.toMatchObject({
    code: 403,
    message: 'pods is forbidden: User "anna" cannot list resource "pods" in API group "" at the cluster scope',
  });
});

test('a namespace named in the request can be visible without a role binding', async () => {
  synced = false;
  allowed = new Set(['list a', 'list b']);
  expect(await visible(pods, {}, 'namespace=a')).toEqual(['a']);
  await expect(visible(pods, {}, 'namespace=c')).rejects.toMatchObject({ code: 403 });
  await expect(visible(pods, {})).rejects.toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
});

test('up to a thousand candidate namespaces are reviewed', async () => {
  granted = Array.from({ length: 1000 }, (_, index) => `n${index}`);
  allowed = new Set(['list n999']);
  expect(await visible(pods, {})).toEqual(['n999']);
});

test('a request with more candidate namespaces than the limit is rejected', async () => {
  granted = Array.from({ length: 1001 }, (_, index) => `n${index}`);
  await expect(visible(pods, {})).rejects.toMatchObject({
    code: 403,
    message: expect.stringContaining(
      'role bindings in more than 1000 namespaces (1001): specify a namespace',
    ) as unknown,
    details: { kind: 'pods' },
  });
  expect(reviewed).toEqual(['list *']);
});

test('no further namespace is reviewed after a failed review', async () => {
  let reviews = 0;
  const candidates = Array.from({ length: 100 }, (_, index) => `ns-${index}`);
  const authorizer = {
    async authorize() {
      reviews += 1;
      if (reviews === 1) throw new Error('kube-apiserver is down');
      await new Promise((resolve) => setImmediate(resolve));
      return { allowed: true, reason: '' };
    },
  };
  const attributes = { verb: 'list', group: '', resource: 'pods', name: '' };
  const user = { username: 'anna', groups: [], via: 'token' } as const;
  await expect(allowedIn(authorizer, user, candidates, () => attributes)).rejects.toThrow('kube-apiserver is down');
  const started = reviews;
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(reviews).toBe(started);
});

const set = (...members: string[]): Set<string> => new Set(members);

test('sets of visible namespaces are equal when they have the same members', () => {
  expect(sameNamespaces(undefined, undefined)).toBe(true);
  expect(sameNamespaces(undefined, set())).toBe(false);
  expect(sameNamespaces(set('a'), undefined)).toBe(false);
  expect(sameNamespaces(set('a', 'b'), set('b', 'a'))).toBe(true);
  expect(sameNamespaces(set('a', 'b'), set('a', 'c'))).toBe(false);
  expect(sameNamespaces(set('a'), set('a', 'b'))).toBe(false);
});
