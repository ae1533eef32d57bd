import { describe, expect, test } from '@jest/globals';
import { impersonatedUser } from '../../../src/auth/impersonation-request.ts';
import type { Attributes } from '../../../src/auth/authorizers/authorizer.ts';
import type { ServerIdentity } from '../../../src/cluster/client/client.ts';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import type { UserInfo } from '../../../src/auth/user.ts';

const caller: UserInfo = { username: 'alice', groups: [], via: 'token' };
const own = { username: 'system:serviceaccount:platform-system:platform-apiserver', uid: 'own-uid' };
const ownIdentity = async (): Promise<typeof own> => own;

const refused = (): Promise<never> => Promise.reject(unreachable(new Error('refused')));

const textOf = (attributes: Attributes): string => {
  if ('path' in attributes) return attributes.path;
  const { verb, group, resource, subresource, namespace, name } = attributes;
  return [verb, group, resource, subresource, namespace, name].filter(Boolean).join(' ');
};

/** Impersonates as a caller with all rights but one, and returns the user and the reviewed rights. */
async function impersonate(
  headers: readonly string[],
  missing?: string,
  identity: () => Promise<ServerIdentity> = ownIdentity,
): Promise<{ readonly user: UserInfo; readonly rights: string[] }> {
  const rights: string[] = [];
  const authorizer = {
    authorize: async (_: UserInfo, attributes: Attributes) => {
      rights.push(textOf(attributes));
      return { allowed: textOf(attributes) !== missing, reason: '' };
    },
  };
  const rules = { authorizer, ownIdentity: identity };
  return { user: await impersonatedUser({ rawHeaders: [...headers] }, caller, rules), rights };
}

const robot = 'system:serviceaccount:ci:robot';
const robotGroups = ['system:serviceaccounts', 'system:serviceaccounts:ci'];
const authenticated = 'system:authenticated';

// Rights and groups as in the impersonation filter of k8s.io/apiserver.
describe.each<[string, string[], string[], string[]]>([
  ['a user', ['Impersonate-User', 'bob'], ['impersonate users bob'], [authenticated]],
  ['a component', ['Impersonate-User', 'system:admin'], ['impersonate users system:admin'], [authenticated]],
  [
    'a ServiceAccount',
    ['Impersonate-User', robot],
    ['impersonate serviceaccounts ci robot'],
    [...robotGroups, authenticated],
  ],
  [
    'a ServiceAccount with another group',
    ['Impersonate-User', robot, 'Impersonate-Group', 'dev'],
    ['impersonate serviceaccounts ci robot', 'impersonate groups dev'],
    ['dev', authenticated],
  ],
  ...['system:serviceaccount:ci', 'system:serviceaccount:ci:Robot', 'system:serviceaccount:a.b:c', `${robot}:x`].map(
    (name): [string, string[], string[], string[]] => [
      `the name ${name}, which no ServiceAccount can have`,
      ['Impersonate-User', name],
      [`impersonate users ${name}`],
      [authenticated],
    ],
  ),
  [
    'the group system:masters',
    ['Impersonate-User', 'bob', 'Impersonate-Group', 'system:masters'],
    ['impersonate users bob', 'impersonate groups system:masters'],
    ['system:masters', authenticated],
  ],
  [
    'the group system:authenticated',
    ['Impersonate-User', 'bob', 'Impersonate-Group', authenticated],
    ['impersonate users bob', `impersonate groups ${authenticated}`],
    [authenticated],
  ],
  [
    'the group system:unauthenticated',
    ['Impersonate-User', 'bob', 'Impersonate-Group', 'system:unauthenticated'],
    ['impersonate users bob', 'impersonate groups system:unauthenticated'],
    ['system:unauthenticated'],
  ],
  [
    'anonymous users',
    ['Impersonate-User', 'system:anonymous'],
    ['impersonate users system:anonymous'],
    ['system:unauthenticated'],
  ],
  [
    'a uid and extras',
    [
      'Impersonate-User',
      'bob',
      'Impersonate-Uid',
      'u',
      'Impersonate-Extra-Team',
      'red',
      'Impersonate-Extra-Team',
      'blue',
    ],
    [
      'impersonate users bob',
      'impersonate authentication.k8s.io uids u',
      'impersonate authentication.k8s.io userextras team red',
      'impersonate authentication.k8s.io userextras team blue',
    ],
    [authenticated],
  ],
])('impersonation of %s', (_, headers, expected, groups) => {
  test('impersonation requires the rights that kube-apiserver requires', async () => {
    expect((await impersonate(headers)).rights).toEqual(expected);
    for (const missing of expected) await expect(impersonate(headers, missing)).rejects.toMatchObject({ code: 403 });
  });

  test('impersonation adds the groups that kube-apiserver adds', async () => {
    expect((await impersonate(headers)).user).toMatchObject({ username: headers[1], groups });
  });
});

describe('impersonation of the server itself', () => {
  test.each([
    ['its name', ['Impersonate-User', own.username]],
    ['its uid', ['Impersonate-User', 'bob', 'Impersonate-Uid', own.uid]],
  ])('impersonation of the server itself with %s is rejected with 403', async (_, headers) => {
    await expect(impersonate(headers)).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('of the gateway itself') as unknown,
    });
  });

  test('impersonation of the server itself is rejected without revealing the identity of the server to the caller', async () => {
    await expect(
      impersonate(['Impersonate-User', own.username], 'impersonate serviceaccounts platform-system platform-apiserver'),
    ).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('User "alice" cannot impersonate') as unknown,
    });
  });

  test("every impersonation fails while the name of the server's identity is unknown", async () => {
    await expect(impersonate(['Impersonate-User', 'bob'], undefined, refused)).rejects.toThrow(
      'kube-apiserver cannot be reached',
    );
  });
});
