/** Generates random Roles, ClusterRoles and bindings. */
import * as fc from 'fast-check';
import { create, remove } from '../kube.ts';
import { namespaces, type TestObject } from './objects.ts';

export interface Grant {
  /**
   * Index of the user. If `toGroup` is true, the grant is for the group of this user, to which a third of the users
   * belongs.
   */
  readonly user: number;
  readonly toGroup: boolean;
  /** Namespace; '' for a ClusterRoleBinding. */
  readonly namespace: string;
  readonly isClusterRole: boolean;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames: readonly string[];
}

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const apiGroup = 'rbac.authorization.k8s.io';
const apiGroups = ['', 'apps', apiGroup, 'resources.platform.io', 'iam.platform.io', 'logging.platform.io'];
const resources = [
  'configmaps',
  'secrets',
  'services',
  'pods',
  'pods/log',
  'deployments',
  'namespaces',
  'nodes',
  'clusterroles',
  'users',
  'users/sessions',
  '*',
];
const groupsOfUsers = 3;

export const groupOf = (batch: string, user: number): string => `${batch}-group-${user % groupsOfUsers}`;

/** Generates a grant for one of the users. `users` is the number of users. */
export const grant = (
  users: number,
  objects: readonly TestObject[],
  usernames: readonly string[],
): fc.Arbitrary<Grant> =>
  fc.record({
    user: fc.nat(users - 1),
    toGroup: fc.nat(9).map((n) => n === 0),
    namespace: fc.constantFrom('', ...namespaces, ...namespaces, ...namespaces, 'kube-system'),
    isClusterRole: fc.boolean(),
    resources: fc.subarray(resources, { minLength: 1, maxLength: 4 }),
    verbs: fc.subarray(['get', 'list', 'watch'], { minLength: 1 }),
    resourceNames: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      {
        weight: 2,
        arbitrary: fc.subarray([...new Set(objects.map(({ name }) => name)), ...namespaces, ...usernames], {
          minLength: 1,
          maxLength: 5,
        }),
      },
    ),
  });

/** Creates the roles and bindings. Returns a function that deletes them. */
export async function createGrants(
  batch: string,
  grants: readonly Grant[],
  users: readonly string[],
): Promise<() => Promise<void>> {
  const roles: string[] = [];
  const bindings: string[] = [];
  for (const [
    index,
    { user, toGroup, namespace, isClusterRole, resources: of, verbs, resourceNames },
  ] of grants.entries()) {
    const name = `${batch}-${index}`;
    const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
    const isCluster = isClusterRole || namespace === '';
    const rules = [{ apiGroups, resources: of, verbs, ...(resourceNames.length === 0 ? {} : { resourceNames }) }];
    const roleCollection = isCluster ? `${rbac}/clusterroles` : `${rbac}${scope}/roles`;
    const bindingCollection = namespace === '' ? `${rbac}/clusterrolebindings` : `${rbac}${scope}/rolebindings`;
    await create(roleCollection, { metadata: { name }, rules });
    roles.push(`${roleCollection}/${name}`);
    await create(bindingCollection, {
      metadata: { name },
      roleRef: { apiGroup, kind: isCluster ? 'ClusterRole' : 'Role', name },
      subjects: [
        toGroup
          ? { apiGroup, kind: 'Group', name: groupOf(batch, user) }
          : { apiGroup, kind: 'User', name: users[user] },
      ],
    });
    bindings.push(`${bindingCollection}/${name}`);
  }
  return async () => {
    for (const path of [...bindings, ...roles]) await remove(path);
  };
}
