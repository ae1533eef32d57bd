/**
 * Compares impersonation at the gateway and at kube-apiserver: ServiceAccounts with random rights send the same random
 * headers to both servers. CASES is the number of requests; SEED repeats a run.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { openURL } from '../client/http1.ts';
import { kubeAPIServer } from '../labs/integration/direct.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { open, read, secureGateway } from '../labs/integration/http.ts';
import {
  bind,
  createClusterRole,
  createServiceAccount,
  removeClusterRole,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
} from '../labs/integration/kube.ts';

const cases = Number(process.env['CASES'] ?? 1_000);
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const callers = Array.from({ length: 8 }, (_, index) => `impersonator-${index}`);
const tokens = new Map<string, string>();

const authentication = 'authentication.k8s.io';
const own = 'system:serviceaccount:platform-system:platform-apiserver';
const users = [
  'bob',
  'sec-é',
  'system:admin',
  'system:anonymous',
  'system:authenticated',
  'system:kube-scheduler',
  'system:serviceaccount:a:B',
];
const accounts = ['default', 'robot'].flatMap((name) =>
  ['default', 'kube-system'].map((namespace) => ({ namespace, name })),
);
const groups = ['dev', 'system:masters', 'system:authenticated', 'system:unauthenticated', 'system:serviceaccounts'];
const uids = ['u-1', 'u-2'];
const extras: readonly (readonly [string, string])[] = [
  ['team', 'red'],
  ['team', 'blue'],
  ['example.com%2fScope', 'all'],
];

const rule = (group: string, resource: string, resourceNames: readonly string[]): object[] =>
  resourceNames.length === 0
    ? []
    : [{ verbs: ['impersonate'], apiGroups: [group], resources: [resource], resourceNames }];

/** Random rules that allow a caller to impersonate some users, ServiceAccounts, groups, uids and extras. */
const rules = fc
  .record({
    users: fc.subarray(users),
    accounts: fc.subarray(['default', 'robot']),
    groups: fc.subarray(groups),
    uids: fc.subarray(uids),
    team: fc.subarray(['red', 'blue']),
    all: fc.subarray(['users', 'serviceaccounts', 'groups'], { maxLength: 1 }),
  })
  .map((names) => {
    return [
      ...rule('', 'users', names.users),
      ...rule('', 'serviceaccounts', names.accounts),
      ...rule('', 'groups', names.groups),
      ...rule(authentication, 'uids', names.uids),
      ...rule(authentication, 'userextras/team', names.team),
      ...names.all.map((resource) => ({ verbs: ['impersonate'], apiGroups: [''], resources: [resource] })),
      // The test detects by this right that the role is in effect.
      { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['in-force'] },
    ];
  });

const headers = fc
  .record({
    user: fc.constantFrom(
      ...users,
      ...accounts.map(({ namespace, name }) => `system:serviceaccount:${namespace}:${name}`),
    ),
    groups: fc.subarray(groups, { maxLength: 2 }),
    uids: fc.subarray(uids, { maxLength: 1 }),
    extras: fc.subarray([...extras], { maxLength: 2 }),
  })
  .map(({ user, ...names }) => {
    const values = new Map<string, string[]>([['impersonate-user', [Buffer.from(user).toString('latin1')]]]);
    if (names.groups.length > 0) values.set('impersonate-group', names.groups);
    if (names.uids.length > 0) values.set('impersonate-uid', names.uids);
    for (const [key, value] of names.extras)
      values.set(`impersonate-extra-${key}`, [...(values.get(`impersonate-extra-${key}`) ?? []), value]);
    return Object.fromEntries(values);
  });

type Headers = Readonly<Record<string, string[]>>;
type Response = readonly [status: number, body: unknown];

const review = {
  method: 'POST',
  body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
};
const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

/** Returns the status with the identity that kube-apiserver sees, or with the error. */
async function responseOf(message: ReturnType<typeof open>): Promise<Response> {
  const { status, body } = await read(await message);
  const json = JSON.parse(body.toString('utf8')) as { status: { userInfo?: unknown }; details?: { kind?: string } };
  if (status === 201) return [status, json.status.userInfo];
  // kube-apiserver reviews extras in random order.
  return [status, json.details?.kind === 'userextras' ? { ...json.details, name: '' } : json.details];
}

const both = (caller: string, impersonation: Headers): Promise<Response[]> => {
  const token = tokens.get(caller) ?? '';
  const sent = { 'content-type': 'application/json', ...impersonation };
  const { server, authority } = kubeAPIServer();
  const bearer = { authorization: `Bearer ${token}` };
  return Promise.all([
    responseOf(openURL(`${server}${path}`, { ca: authority }, { ...review, headers: { ...sent, ...bearer } })),
    responseOf(open(`${secureGateway()}${path}`, { ...review, token, headers: sent })),
  ]);
};

beforeAll(async () => {
  const random = fc.sample(rules, { numRuns: callers.length, seed });
  for (const [index, caller] of callers.entries()) {
    await createServiceAccount(caller);
    await createClusterRole(caller, random[index] ?? []);
    await bind(caller, caller, { kind: 'ServiceAccount', name: caller, namespace: 'default' });
    tokens.set(caller, await serviceAccountToken(caller));
  }
  for (const caller of callers)
    await eventually(`the role of ${caller} is in force`, async () => {
      const statuses = (await both(caller, { 'impersonate-user': ['in-force'] })).map(([status]) => status);
      if (statuses.some((status) => status !== 201)) throw new Error(`the statuses are ${statuses.join(' and ')}`);
    });
});
afterAll(async () => {
  for (const caller of callers) {
    await unbind(caller);
    await removeClusterRole(caller);
    await removeServiceAccount(caller);
  }
});

// evidence: impersonation-equals-kubernetes
test(
  'the gateway accepts and rejects the same impersonation requests as kube-apiserver, and returns the same identity',
  async () => {
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...callers), headers, async (caller, impersonation) => {
        const [direct, through] = await both(caller, impersonation);
        expect(through).toEqual(direct);
        const status = direct?.[0] ?? 0;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }),
      { numRuns: cases, seed },
    );
    // Acceptance and rejection both occur often enough for a meaningful comparison.
    expect(Math.min(statuses.get(201) ?? 0, statuses.get(403) ?? 0)).toBeGreaterThan(cases / 50);
  },
  cases * 100,
);

test('the gateway allows callers to impersonate the same ServiceAccounts as kube-apiserver, except the ServiceAccount of the gateway', async () => {
  const name = 'impersonator-of-all';
  await createServiceAccount(name);
  await createClusterRole(name, [{ verbs: ['impersonate'], apiGroups: [''], resources: ['users', 'serviceaccounts'] }]);
  await bind(name, name, { kind: 'ServiceAccount', name, namespace: 'default' });
  tokens.set(name, await serviceAccountToken(name));
  try {
    await eventually('the role is in force', async () => {
      const all = await both(name, { 'impersonate-user': ['system:serviceaccount:kube-system:default'] });
      expect(all.map(([status]) => status)).toEqual([201, 201]);
    });
    expect((await both(name, { 'impersonate-user': [own] })).map(([status]) => status)).toEqual([201, 403]);
  } finally {
    await unbind(name);
    await removeClusterRole(name);
    await removeServiceAccount(name);
  }
});
