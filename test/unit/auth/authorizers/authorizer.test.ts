import { expect, test } from '@jest/globals';
import { assertAllowed, type Attributes } from '../../../../src/auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';

const alice: UserInfo = { username: 'alice', groups: [], via: 'token' };
const decide = async (attributes: Attributes, allowed: boolean, reason = ''): Promise<void> =>
  assertAllowed({ authorize: async () => ({ allowed, reason }) }, alice, attributes);

const resource = { verb: 'list', group: '', resource: 'nodes' };

test('an allowed request is accepted by the authorizer', async () => {
  await expect(decide(resource, true, 'a role')).resolves.toBeUndefined();
});

/** Messages as k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go formats them. */
test.each<[Attributes, string, object | undefined]>([
  [
    resource,
    'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
    { kind: 'nodes' },
  ],
  [
    { verb: 'get', group: '', resource: 'nodes', name: 'n1' },
    'nodes "n1" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope',
    { kind: 'nodes', name: 'n1' },
  ],
  [
    { verb: 'watch', group: 'apps', resource: 'deployments', namespace: 'ns' },
    'deployments.apps is forbidden: User "alice" cannot watch resource "deployments" in API group "apps" in the namespace "ns"',
    { kind: 'deployments', group: 'apps' },
  ],
  [
    { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'ns', name: 'p' },
    'pods "p" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "ns"',
    { kind: 'pods', name: 'p' },
  ],
  [{ verb: 'get', path: '/metrics' }, 'forbidden: User "alice" cannot get path "/metrics"', undefined],
])('a denied request for %j gets the error message of kube-apiserver', async (attributes, message, details) => {
  await expect(decide(attributes, false)).rejects.toMatchObject({
    code: 403,
    reason: 'Forbidden',
    message,
    ...(details === undefined ? {} : { details }),
  });
  await expect(decide(attributes, false, 'because')).rejects.toMatchObject({ message: `${message}: because` });
});

test('a request that a cached decision allows is accepted without a review and without a promise', () => {
  const cached = { allowsFromCache: () => true, authorize: () => Promise.reject(new Error('reviewed')) };
  expect(assertAllowed(cached, alice, resource)).toBeUndefined();
});

test('a request that no cached decision allows is decided by a review', async () => {
  const denied = { allowsFromCache: () => false, authorize: async () => ({ allowed: false, reason: '' }) };
  await expect(assertAllowed(denied, alice, resource)).rejects.toMatchObject({ code: 403 });
});
