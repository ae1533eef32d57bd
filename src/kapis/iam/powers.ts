/**
 * What makes somebody as mighty as root of the cluster or of the platform (docs/security.md). Whoever sets the password of a user may
 * act as that user: so what a user may do of this by name, the one who sets the password must be allowed too.
 */
import type { Account } from '../../accounts/directory/account.ts';
import type { Authorizer, ResourceAttributes } from '../../auth/authorizers/authorizer.ts';
import { withAuthenticated, type UserInfo } from '../../auth/user.ts';
import { objectNames } from '../../config/names.ts';

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

/** Where the platform itself is. */
export interface Release {
  readonly namespace: string;
  /** Of the cluster configuration object. */
  readonly configMap: string;
}

/** A handful of each kind, by which the usual roles are known; not every way there is. */
function powersOf({ namespace, configMap }: Release): readonly ResourceAttributes[] {
  const write = ['create', 'update', 'patch'];
  return [
    ...every('*', ['*'], ['*']),
    ...every('', ['users', 'groups', 'serviceaccounts'], ['impersonate']),
    ...every('rbac.authorization.k8s.io', ['clusterroles'], ['bind', 'escalate']),
    ...every('admissionregistration.k8s.io', ['mutatingwebhookconfigurations'], write),
    ...every('certificates.k8s.io', ['certificatesigningrequests/approval'], ['update', 'patch']),
    ...every('', ['nodes/proxy'], ['get', 'create']),
    ...every('iam.platform.io', ['users'], write),
    ...every('iam.platform.io', ['users/password'], ['update']),
    ...[system, namespace].flatMap((within) => [
      ...every('', ['secrets'], ['get', 'list', 'watch', ...write], { namespace: within }),
      ...every('', ['serviceaccounts/token', 'pods', 'pods/exec'], ['create'], { namespace: within }),
      ...every('apps', ['deployments', 'daemonsets'], write, { namespace: within }),
    ]),
    ...every('', ['secrets'], ['get'], { namespace, name: objectNames.signingKeysSecret }),
    ...every('', ['configmaps'], ['update', 'patch'], { namespace, name: configMap }),
    ...every('iam.platform.io', ['sessions'], write, { namespace }),
  ];
}

/** Tells what the account may do by its name alone and the caller may not; undefined if there is nothing. Throws 503 when that cannot be told. */
export async function powerBeyond(
  authorizer: Authorizer,
  release: Release,
  caller: UserInfo,
  { username, uid }: Account,
): Promise<ResourceAttributes | undefined> {
  const may = async (user: UserInfo, attributes: ResourceAttributes): Promise<boolean> =>
    (await authorizer.authorize(user, attributes)).allowed;
  if (await may(caller, { verb: 'impersonate', group: '', resource: 'users', name: username })) return undefined;
  const byName = withAuthenticated({ username, uid, groups: [], via: 'token' });
  const powers = powersOf(release);
  const beyond = await Promise.all(
    powers.map(async (power) => (await may(byName, power)) && !(await may(caller, power))),
  );
  return powers.find((_, index) => beyond[index]);
}
