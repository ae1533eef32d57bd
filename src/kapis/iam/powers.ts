/**
 * Rights that are equivalent to root of the cluster or of the platform (docs/security.md). A caller who sets the password of a user can
 * act as that user, and so needs each of these rights that the user has by name.
 */
import type { Account } from '../../accounts/directory/account.ts';
import type { Authorizer, ResourceAttributes } from '../../auth/authorizers/authorizer.ts';
import { withAuthenticated, type UserInfo } from '../../auth/user.ts';
import { objectNames } from '../../config/names.ts';
import type { KubeClient } from '../../kube/client.ts';
import { rulesOf, type Rule } from './rules.ts';

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

/** The rights by which the usual roles are known, not every way there is. */
function powersOf({ namespace, configMap }: Release): readonly ResourceAttributes[] {
  const write = ['create', 'update', 'patch'];
  return [
    ...every('*', ['*'], ['*']),
    ...every('', ['users', 'groups', 'serviceaccounts'], ['impersonate']),
    ...every('rbac.authorization.k8s.io', ['clusterroles'], ['bind', 'escalate']),
    ...every('admissionregistration.k8s.io', admission, write),
    ...every('apiregistration.k8s.io', ['apiservices'], write),
    ...every('certificates.k8s.io', ['certificatesigningrequests/approval'], ['update', 'patch']),
    ...every('', ['nodes/proxy'], ['get', 'create']),
    ...every('iam.platform.io', ['users'], write),
    ...every('iam.platform.io', ['users/password'], ['update']),
    ...[system, namespace].flatMap((within) => [
      ...every('', ['secrets'], ['get', 'list', 'watch', ...write], { namespace: within }),
      ...every('', ['serviceaccounts/token'], ['create'], { namespace: within }),
      ...every('', ['pods/exec', 'pods/attach'], ['get', 'create'], { namespace: within }),
      ...every('', ['pods/ephemeralcontainers'], ['update', 'patch'], { namespace: within }),
      ...every('', ['pods', 'replicationcontrollers'], write, { namespace: within }),
      ...every('apps', ['deployments', 'daemonsets', 'replicasets', 'statefulsets'], write, { namespace: within }),
      ...every('batch', ['jobs', 'cronjobs'], write, { namespace: within }),
      ...every('rbac.authorization.k8s.io', ['roles'], ['bind', 'escalate'], { namespace: within }),
    ]),
    ...[objectNames.signingKeysSecret, objectNames.refreshKeySecret, objectNames.adminSecret].flatMap((name) =>
      every('', ['secrets'], ['get', 'update', 'patch'], { namespace, name }),
    ),
    ...every('', ['configmaps'], ['update', 'patch'], { namespace, name: configMap }),
    ...every('iam.platform.io', ['sessions'], write, { namespace }),
  ];
}

/** Webhooks see or change every object, and the policies protect the groups of users. */
const admission = [
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'validatingwebhookconfigurations',
];

const has = (listed: readonly string[] | undefined, wanted: string): boolean =>
  listed?.includes(wanted) === true || listed?.includes('*') === true;

/** Such as `pods/exec`. */
export const resourcePath = ({ resource, subresource }: ResourceAttributes): string =>
  subresource === undefined ? resource : `${resource}/${subresource}`;

/** The power over each object that the rule names; a review without a name would not find it. */
function namedPowers(power: ResourceAttributes, { verbs, apiGroups, resources, resourceNames = [] }: Rule) {
  const { verb, group, subresource } = power;
  const path = resourcePath(power);
  const isGranted =
    has(verbs, verb) &&
    has(apiGroups, group) &&
    (has(resources, path) || (subresource !== undefined && resources?.includes(`*/${subresource}`) === true));
  return isGranted ? resourceNames.map((name) => ({ ...power, name })) : [];
}

/**
 * Returns a right that the account has by its name alone and the caller does not have; undefined if there is none. Throws 503 when
 * kube-apiserver cannot be reached.
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
  const powers = powersOf(release);
  const rules = new Map<string, readonly Rule[]>();
  for (const namespace of new Set([system, release.namespace]))
    rules.set(namespace, await rulesOf(client, byName, namespace));
  const named = powers.flatMap((power) =>
    (rules.get(power.namespace ?? release.namespace) ?? []).flatMap((rule) => namedPowers(power, rule)),
  );
  const all = [...powers, ...named];
  const beyond = await Promise.all(
    all.map(async (power) => (await isAllowed(byName, power)) && !(await isAllowed(caller, power))),
  );
  return all.find((_, index) => beyond[index]);
}
