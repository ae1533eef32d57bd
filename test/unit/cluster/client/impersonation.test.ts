import { describe, expect, test } from '@jest/globals';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import { asUser, impersonationHeaders, type UpstreamIdentity } from '../../../../src/cluster/client/impersonation.ts';

const anna: UpstreamIdentity = { username: 'anna', groups: ['dev', 'system:authenticated'], proved: false };

const robot: Partial<UpstreamIdentity> & { groups: readonly string[] } = {
  username: 'system:serviceaccount:apps:robot',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:apps', 'system:authenticated'],
};

describe('the impersonation headers of a user', () => {
  test('the impersonation headers of a user contain all fields of the user', () => {
    expect(impersonationHeaders({ ...anna, uid: 'u-1', extra: { 'example.com/Pod name': ['a', 'b'] } })).toEqual({
      'impersonate-user': 'anna',
      'impersonate-uid': 'u-1',
      'impersonate-group': ['dev'],
      'impersonate-extra-example.com%2F%50od%20name': ['a', 'b'],
    });
    expect(impersonationHeaders({ username: 'anna', groups: [], proved: false })).toEqual({
      'impersonate-user': 'anna',
    });
  });

  test.each<[string, Partial<UpstreamIdentity>, readonly string[] | undefined]>([
    ['system:authenticated alone', { groups: ['system:authenticated'] }, ['system:authenticated']],
    ['system:authenticated after another group', { groups: ['dev', 'system:authenticated'] }, ['dev']],
    [
      'system:authenticated before another group',
      { groups: ['system:authenticated', 'dev'] },
      ['system:authenticated', 'dev'],
    ],
    ['groups without system:authenticated', { groups: ['dev', 'ops'] }, ['dev', 'ops']],
    ['no groups', { groups: [] }, undefined],
    [
      'the anonymous user',
      { username: 'system:anonymous', groups: ['dev', 'system:authenticated'] },
      ['dev', 'system:authenticated'],
    ],
    [
      'system:unauthenticated and system:authenticated',
      { groups: ['system:unauthenticated', 'system:authenticated'] },
      ['system:unauthenticated', 'system:authenticated'],
    ],
    ['a ServiceAccount with its usual groups', robot, undefined],
    [
      'a ServiceAccount with more groups',
      { ...robot, groups: ['system:serviceaccounts', 'system:serviceaccounts:apps', 'dev', 'system:authenticated'] },
      ['system:serviceaccounts', 'system:serviceaccounts:apps', 'dev'],
    ],
    [
      'a ServiceAccount with fewer groups',
      { ...robot, groups: ['system:serviceaccounts', 'system:authenticated'] },
      ['system:serviceaccounts'],
    ],
    [
      'a ServiceAccount with groups of another namespace',
      { ...robot, groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system'] },
      ['system:serviceaccounts', 'system:serviceaccounts:kube-system'],
    ],
    [
      'a user with groups of ServiceAccounts',
      { groups: robot.groups },
      ['system:serviceaccounts', 'system:serviceaccounts:apps'],
    ],
  ])('the impersonation headers of a user omit groups only if kube-apiserver adds them: %s', (_, more, sent) => {
    expect(impersonationHeaders({ ...anna, ...more, proved: true })['impersonate-group']).toEqual(sent);
  });

  test('the impersonation headers of a user are encoded in UTF-8', () => {
    expect(impersonationHeaders({ ...anna, username: 'änna' })['impersonate-user']).toBe('Ã¤nna');
  });

  test.each(['a\r\nimpersonate-group: system:masters', 'a\n', 'a\0', 'a\u007F', ' a', 'a ', '\ta', 'a\uD800', ''])(
    'impersonation headers are not created for the name %j',
    (username) => {
      expect(() => impersonationHeaders({ ...anna, username })).toThrow(expect.objectContaining({ code: 400 }));
    },
  );

  test.each<Partial<UpstreamIdentity>>([
    { groups: ['a\nb'] },
    { groups: [' a'] },
    { uid: 'a\r' },
    { extra: { key: ['a\0'] } },
  ])('impersonation headers are not created for the value %j', (more) => {
    expect(() => impersonationHeaders({ ...anna, ...more })).toThrow(expect.objectContaining({ code: 400 }));
  });

  test.each<Partial<UpstreamIdentity>>([
    { username: 'system:admin' },
    { username: 'system:authenticated' },
    { username: 'system:serviceaccount:default:a' },
    { groups: ['system:masters'] },
    { groups: ['system:authenticated', 'system:nodes'] },
  ])('impersonation headers with names that Kubernetes reserves are created only for a verified user: %j', (more) => {
    expect(() => impersonationHeaders({ ...anna, ...more })).toThrow(expect.objectContaining({ code: 403 }));
    expect(impersonationHeaders({ ...anna, ...more, proved: true })).toHaveProperty('impersonate-user');
  });
});

test('asUser() rejects a request that already has impersonation headers, whatever their case', async () => {
  const sent: KubeRequest[] = [];
  const client = asUser(
    {
      async stream(_, options = {}) {
        sent.push(options);
        throw new Error('sent');
      },
    },
    anna,
  );
  for (const name of [
    'impersonate-user',
    'Impersonate-User',
    'IMPERSONATE-GROUP',
    'impersonate-extra-a',
    'Authorization',
  ])
    expect(() => client.stream('/api/v1/secrets', { headers: { [name]: 'root' } })).toThrow(name);
  await expect(client.stream('/api/v1/secrets', { headers: { accept: 'application/json' } })).rejects.toThrow('sent');
  expect(sent.map((options) => options.headers)).toEqual([
    { accept: 'application/json', 'impersonate-user': 'anna', 'impersonate-group': ['dev'] },
  ]);
});
