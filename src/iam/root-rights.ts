/**
 * Rights that are equivalent to root of the cluster or of the platform (docs/security.md). A caller who sets the
 * password of a user can log in as that user. The caller must therefore have every one of these rights that RBAC binds
 * to the user by name.
 */
import type { Account } from '../accounts/directory/account.ts';
import type { Authorizer, ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import { withAuthenticated, type UserInfo } from '../auth/user.ts';
import { iamGroup, objectNames } from '../config/names.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { rightsOf } from './rules.ts';

const system = 'kube-system';

const rightsTo = (
  group: string,
  resources: readonly string[],
  verbs: readonly string[],
  within: Pick<ResourceAttributes, 'namespace' | 'name'> = {},
): ResourceAttributes[] =>
  resources.flatMap((one) => {
    const [resource = '', subresource] = one.split('/');
    return verbs.map((verb) => ({
      verb,
      group,
      resource,
      ...(subresource === undefined ? {} : { subresource }),
      ...within,
    }));
  });

/** The installed release. */
export interface Release {
  readonly namespace: string;
  /** ConfigMap of the cluster configuration object. */
  readonly configMap: string;
}

/**
 * Returns the root-equivalent rights that common roles grant. Each right is reviewed separately, because authorizers
 * other than RBAC do not list the rights that they grant (rules.ts).
 */
function rootRightsOf({ namespace, configMap }: Release): readonly ResourceAttributes[] {
  const write = ['create', 'update', 'patch'];
  return [
    ...rightsTo('*', ['*'], ['*']),
    ...rightsTo('', ['users', 'groups', 'serviceaccounts'], ['impersonate']),
    ...rightsTo('rbac.authorization.k8s.io', ['clusterroles'], ['bind', 'escalate']),
    ...rightsTo('admissionregistration.k8s.io', admission, [...write, 'delete', 'deletecollection']),
    ...rightsTo('apiextensions.k8s.io', ['customresourcedefinitions'], write),
    ...rightsTo('apiregistration.k8s.io', ['apiservices'], write),
    ...rightsTo('certificates.k8s.io', ['certificatesigningrequests/approval'], ['update', 'patch']),
    ...rightsTo('', ['nodes/proxy'], ['get', 'create']),
    ...rightsTo(iamGroup, ['users'], write),
    ...rightsTo(iamGroup, ['users/password'], ['update']),
    ...[system, namespace].flatMap((within) => [
      ...rightsTo('', ['secrets'], ['get', 'list', 'watch', ...write], { namespace: within }),
      ...rightsTo('', ['configmaps'], write, { namespace: within }),
      ...rightsTo('', ['serviceaccounts/token', 'pods', 'pods/exec'], ['create'], { namespace: within }),
      ...rightsTo('apps', ['deployments', 'daemonsets', 'statefulsets'], write, { namespace: within }),
      ...rightsTo('batch', ['jobs', 'cronjobs'], write, { namespace: within }),
    ]),
    ...ownSecrets.flatMap((name) => rightsTo('', ['secrets'], ['get', 'update', 'patch'], { namespace, name })),
    ...rightsTo('', ['configmaps'], ['update', 'patch'], { namespace, name: configMap }),
    ...rightsTo(iamGroup, ['sessions'], write, { namespace }),
  ];
}

const ownSecrets = [
  objectNames.signingKeysSecret,
  objectNames.refreshKeySecret,
  objectNames.adminSecret,
  objectNames.servingCertSecret,
];

/** Admission resources. Webhooks see or change every object, and policies protect the groups of users. */
const admission = [
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'validatingwebhookconfigurations',
];

/** Returns the resource with its subresource, such as `pods/exec`. */
export const resourcePath = ({ resource, subresource }: ResourceAttributes): string =>
  subresource === undefined ? resource : `${resource}/${subresource}`;

/** Number of rights that are reviewed concurrently. */
const batchSize = 50;

/**
 * Returns a root-equivalent right that the account has by its name alone and the caller does not have; undefined if
 * there is none. All rights that `rootRightsOf` returns are root-equivalent. All rights other than reads are
 * root-equivalent at cluster scope, in kube-system and in the release's namespace. Throws 503 when kube-apiserver
 * cannot be reached.
 */
export async function missingRootRight(
  { authorizer, client, release }: { authorizer: Authorizer; client: Pick<KubeClient, 'stream'>; release: Release },
  caller: UserInfo,
  { username, uid }: Account,
): Promise<ResourceAttributes | undefined> {
  const isAllowed = async (user: UserInfo, attributes: ResourceAttributes): Promise<boolean> =>
    (await authorizer.authorize(user, attributes)).allowed;
  if (await isAllowed(caller, { verb: 'impersonate', group: '', resource: 'users', name: username })) return undefined;
  const byName = withAuthenticated({ username, uid, groups: [], via: 'token' });
  const rights = [...rootRightsOf(release)];
  for (const namespace of new Set([system, release.namespace]))
    for (const right of await rightsOf(client, byName, namespace)) {
      // A rule may come from a RoleBinding, or from a ClusterRoleBinding, which applies in all namespaces and at
      // cluster scope. The response does not show the kind of binding.
      const { namespace: _, ...everywhere } = right;
      rights.push(everywhere, right);
    }
  for (let at = 0; at < rights.length; at += batchSize) {
    const batch = rights.slice(at, at + batchSize);
    const isMissing = await Promise.all(
      batch.map(async (right) => (await isAllowed(byName, right)) && !(await isAllowed(caller, right))),
    );
    const found = batch.find((_, index) => isMissing[index]);
    if (found !== undefined) return found;
  }
  return undefined;
}
