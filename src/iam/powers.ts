/**
 * Rights that are equivalent to root of the cluster or of the platform (docs/security.md). A caller who sets the password of a user can
 * act as that user, and so needs each of these rights that the user has by name.
 */
import type { Account } from '../accounts/directory/account.ts';
import type { Authorizer, ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import { withAuthenticated, type UserInfo } from '../auth/user.ts';
import { iamGroup, objectNames } from '../config/names.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { rightsOf } from './rules.ts';

const system = 'kube-system';

const every = (
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
  /** Of the cluster configuration object. */
  readonly configMap: string;
}

/**
 * Root-equivalent rights that common roles grant. Each is reviewed by itself, because only RBAC lists what it grants (rules.ts).
 */
function powersOf({ namespace, configMap }: Release): readonly ResourceAttributes[] {
  const write = ['create', 'update', 'patch'];
  return [
    ...every('*', ['*'], ['*']),
    ...every('', ['users', 'groups', 'serviceaccounts'], ['impersonate']),
    ...every('rbac.authorization.k8s.io', ['clusterroles'], ['bind', 'escalate']),
    ...every('admissionregistration.k8s.io', admission, [...write, 'delete', 'deletecollection']),
    ...every('apiextensions.k8s.io', ['customresourcedefinitions'], write),
    ...every('apiregistration.k8s.io', ['apiservices'], write),
    ...every('certificates.k8s.io', ['certificatesigningrequests/approval'], ['update', 'patch']),
    ...every('', ['nodes/proxy'], ['get', 'create']),
    ...every(iamGroup, ['users'], write),
    ...every(iamGroup, ['users/password'], ['update']),
    ...[system, namespace].flatMap((within) => [
      ...every('', ['secrets'], ['get', 'list', 'watch', ...write], { namespace: within }),
      ...every('', ['configmaps'], write, { namespace: within }),
      ...every('', ['serviceaccounts/token', 'pods', 'pods/exec'], ['create'], { namespace: within }),
      ...every('apps', ['deployments', 'daemonsets', 'statefulsets'], write, { namespace: within }),
      ...every('batch', ['jobs', 'cronjobs'], write, { namespace: within }),
    ]),
    ...ownSecrets.flatMap((name) => every('', ['secrets'], ['get', 'update', 'patch'], { namespace, name })),
    ...every('', ['configmaps'], ['update', 'patch'], { namespace, name: configMap }),
    ...every(iamGroup, ['sessions'], write, { namespace }),
  ];
}

const ownSecrets = [
  objectNames.signingKeysSecret,
  objectNames.refreshKeySecret,
  objectNames.adminSecret,
  objectNames.servingCertSecret,
];

/** Webhooks see or change every object, and the policies protect the groups of users. */
const admission = [
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'validatingwebhookconfigurations',
];

/** Such as `pods/exec`. */
export const resourcePath = ({ resource, subresource }: ResourceAttributes): string =>
  subresource === undefined ? resource : `${resource}/${subresource}`;

/** Reviews at once. */
const batch = 50;

/**
 * Returns a root-equivalent right that the account has by its name alone and the caller does not have; undefined if there is none.
 * Beside `powersOf`, that is every right at cluster scope, in kube-system and in the release's namespace that does more than read. Throws
 * 503 when kube-apiserver cannot be reached.
 */
export async function powerBeyond(
  { authorizer, client, release }: { authorizer: Authorizer; client: Pick<KubeClient, 'stream'>; release: Release },
  caller: UserInfo,
  { username, uid }: Account,
): Promise<ResourceAttributes | undefined> {
  const isAllowed = async (user: UserInfo, attributes: ResourceAttributes): Promise<boolean> =>
    (await authorizer.authorize(user, attributes)).allowed;
  if (await isAllowed(caller, { verb: 'impersonate', group: '', resource: 'users', name: username })) return undefined;
  const byName = withAuthenticated({ username, uid, groups: [], via: 'token' });
  const powers = [...powersOf(release)];
  for (const namespace of new Set([system, release.namespace]))
    for (const right of await rightsOf(client, byName, namespace)) {
      // A rule does not say whether a ClusterRoleBinding grants it, for all namespaces and at cluster scope.
      const { namespace: _, ...everywhere } = right;
      powers.push(everywhere, right);
    }
  for (let at = 0; at < powers.length; at += batch) {
    const some = powers.slice(at, at + batch);
    const beyond = await Promise.all(
      some.map(async (power) => (await isAllowed(byName, power)) && !(await isAllowed(caller, power))),
    );
    const found = some.find((_, index) => beyond[index]);
    if (found !== undefined) return found;
  }
  return undefined;
}
