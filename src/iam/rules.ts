import { upstreamIdentityOf, type UserInfo } from '../auth/user.ts';
import type { ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import { serviceUnavailable } from '../runtime/errors.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { asUser } from '../cluster/client/impersonation.ts';
import { readBody } from '../runtime/promises.ts';

/** A ResourceRule of authorization.k8s.io/v1. */
interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

const reviews = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
/** Maximum bytes of a response: several times the size of the largest object in etcd. */
const maxBytes = 8 * 1024 * 1024;

/** Returns whether the right allows only reads that neither reveal credentials nor reach processes. */
const isPlainRead = ({ verb, resource, subresource }: ResourceAttributes): boolean =>
  ['get', 'list', 'watch'].includes(verb) &&
  !['secrets', '*'].includes(resource) &&
  [undefined, 'status', 'scale', 'log'].includes(subresource);

/**
 * Returns each combination of verb, group and resource that a rule grants. Wildcards are not expanded, because only a
 * wildcard covers a wildcard.
 */
const rightsIn = (
  namespace: string,
  { verbs, apiGroups = [], resources = [], resourceNames = [] }: Rule,
): ResourceAttributes[] =>
  verbs.flatMap((verb) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((path) => {
        const [resource = '', subresource] = path.split('/');
        const right = { verb, group, resource, ...(subresource === undefined ? {} : { subresource }), namespace };
        return resourceNames.length === 0 ? [right] : resourceNames.map((name) => ({ ...right, name }));
      }),
    ),
  );

/**
 * Returns the rights beyond plain reads that RBAC grants the user in the namespace, including those of
 * ClusterRoleBindings. The rights come from a SelfSubjectRulesReview that impersonates the user. Throws 503 if the
 * review fails. `incomplete` is ignored, because it is always true with a webhook authorizer. Rights that a webhook can
 * grant are reviewed separately (root-rights.ts).
 */
export async function rightsOf(
  client: Pick<KubeClient, 'stream'>,
  user: UserInfo,
  namespace: string,
): Promise<readonly ResourceAttributes[]> {
  const { status, body } = await asUser(client, upstreamIdentityOf(user)).stream(reviews, {
    method: 'POST',
    lane: 'reviews',
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
  });
  const text = (await readBody(body, maxBytes)).toString('utf8');
  if (status !== 201)
    throw serviceUnavailable(`the rights of the user cannot be read: kube-apiserver returned ${status}`, 1);
  const review = JSON.parse(text) as { status: { resourceRules: Rule[] | null } };
  const rights = (review.status.resourceRules ?? []).flatMap((rule) => rightsIn(namespace, rule));
  return rights.filter((right) => !isPlainRead(right));
}
