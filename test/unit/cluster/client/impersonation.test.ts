import { describe, expect, test } from '@jest/globals';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import { asUser, impersonationHeaders, type UpstreamIdentity } from '../../../../src/cluster/client/impersonation.ts';

const anna: UpstreamIdentity = { username: 'anna', groups: ['dev', 'system:authenticated'], proved: false };

const robot: Partial<UpstreamIdentity> & { groups: readonly string[] } = {
  username: 'system:serviceaccount:apps:robot',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:apps', 'system:authenticated'],
};

describe('the headers of a user', () => {
  test('name the user and all that is known of the user', () => {
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
    ['alone', { groups: ['system:authenticated'] }, ['system:authenticated']],
    ['before another', { groups: ['system:authenticated', 'dev'] }, ['dev']],
    ['without being there', { groups: ['dev', 'ops'] }, ['dev', 'ops']],
    ['of nobody', { groups: [] }, undefined],
    [
      'of who is anonymous',
      { username: 'system:anonymous', groups: ['dev', 'system:authenticated'] },
      ['dev', 'system:authenticated'],
    ],
    [
      'beside its opposite',
      { groups: ['system:unauthenticated', 'system:authenticated'] },
      ['system:unauthenticated', 'system:authenticated'],
    ],
    ['of a ServiceAccount, which has those of its kind', robot, undefined],
    [
      'of a ServiceAccount that has more',
      { ...robot, groups: [...robot.groups, 'dev'] },
      ['system:serviceaccounts', 'system:serviceaccounts:apps', 'dev'],
    ],
    [
      'of a ServiceAccount that has less',
      { ...robot, groups: ['system:serviceaccounts', 'system:authenticated'] },
      ['system:serviceaccounts'],
    ],
    [
      'of a ServiceAccount with those of another namespace',
      { ...robot, groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system'] },
      ['system:serviceaccounts', 'system:serviceaccounts:kube-system'],
    ],
    [
      'of who has the groups of a ServiceAccount but is none',
      { groups: robot.groups },
      ['system:serviceaccounts', 'system:serviceaccounts:apps'],
    ],
  ])('leave to kube-apiserver what it adds: %s', (_, more, sent) => {
    expect(impersonationHeaders({ ...anna, ...more, proved: true })['impersonate-group']).toEqual(sent);
  });

  test('are bytes of UTF-8', () => {
    expect(impersonationHeaders({ ...anna, username: 'änna' })['impersonate-user']).toBe('Ã¤nna');
  });

  test.each(['a\r\nimpersonate-group: system:masters', 'a\n', 'a\0', 'a\u007F', ' a', 'a ', '\ta', 'a\uD800', ''])(
    'refuse the name %j',
    (username) => {
      expect(() => impersonationHeaders({ ...anna, username })).toThrow(expect.objectContaining({ code: 400 }));
    },
  );

  test.each<Partial<UpstreamIdentity>>([
    { groups: ['a\nb'] },
    { groups: [' a'] },
    { uid: 'a\r' },
    { extra: { key: ['a\0'] } },
  ])('refuse %j', (more) => {
    expect(() => impersonationHeaders({ ...anna, ...more })).toThrow(expect.objectContaining({ code: 400 }));
  });

  test.each<Partial<UpstreamIdentity>>([
    { username: 'system:admin' },
    { username: 'system:serviceaccount:default:a' },
    { groups: ['system:masters'] },
    { groups: ['system:authenticated', 'system:nodes'] },
  ])("believe Kubernetes' own names only when they are proved: %j", (more) => {
    expect(() => impersonationHeaders({ ...anna, ...more })).toThrow(expect.objectContaining({ code: 403 }));
    expect(impersonationHeaders({ ...anna, ...more, proved: true })).toHaveProperty('impersonate-user');
  });
});

test('asUser refuses a request that brings an identity of its own, in any case', async () => {
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
