/** Creates User objects with alice's password as the administrator of the cluster. */
import { login, postForm, passwordForm } from './login.ts';
import { gateway } from './http.ts';
import { create, get, releasePath, remove, type KubeObject } from './kube.ts';
import { eventually } from './eventually.ts';
import { passwords } from './people.ts';
import { nativeHashFunctions } from '../../../src/accounts/passwords/passwords.ts';

export const usersPath = '/apis/iam.platform.io/v1alpha2/users';
export const userPath = (name: string): string => `${usersPath}/${name}`;

export const createUser = (name: string, spec: object = {}): Promise<KubeObject> =>
  create(usersPath, { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', metadata: { name }, spec });

/** Creates a user and waits until both replicas know the user. */
export async function createUserWithPassword(name: string, spec: object = {}): Promise<KubeObject> {
  const user = await createUser(name, spec);
  const { uid = '' } = user.metadata;
  await create(`${releasePath}/secrets`, {
    metadata: {
      name: `platform-user-${uid}`,
      ownerReferences: [{ apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', name, uid }],
    },
    type: 'iam.platform.io/password',
    stringData: { passwordHash: await nativeHashFunctions.hash(passwords.alice, 'bcrypt:4') },
  });
  for (const base of [gateway(0), gateway(1)])
    await eventually(`${name} may log in at ${base}`, () => login(name, base, passwords.alice));
  return user;
}

export const removeUser = (name: string): Promise<void> => remove(userPath(name));

/** Returns the statuses of both replicas for a login with alice's password. */
export const loginStatuses = (name: string): Promise<number[]> =>
  Promise.all(
    [gateway(0), gateway(1)].map(
      async (base) => (await postForm(passwordForm(name, passwords.alice), { base })).status,
    ),
  );

export const conditionsOf = async (name: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  ((await get(userPath(name))).status?.['conditions'] ?? []) as Readonly<Record<string, unknown>>[];
