import { impersonatedOf } from '../../auth/impersonated.ts';
import type { UserInfo } from '../../auth/user.ts';
import { serviceUnavailable } from '../../errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import { asUser } from '../../kube/impersonation.ts';
import { readBody } from '../../kube/read-body.ts';

/** A ResourceRule of authorization.k8s.io/v1. */
export interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
/** A few times the largest object of etcd. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Returns the rules that RBAC has for the user in the namespace, those of ClusterRoleBindings included, by a SelfSubjectRulesReview in the
 * user's name. An authorizer other than RBAC may allow more. Throws 503.
 */
export async function rulesOf(
  client: Pick<KubeClient, 'stream'>,
  user: UserInfo,
  namespace: string,
): Promise<readonly Rule[]> {
  const { status, body } = await asUser(client, impersonatedOf(user)).stream(path, {
    method: 'POST',
    lane: 'reviews',
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
  });
  const text = (await readBody(body, maxBytes)).toString('utf8');
  if (status !== 201)
    throw serviceUnavailable(`the rights of the user cannot be read: kube-apiserver returned ${status}`, 1);
  const review = JSON.parse(text) as { status: { resourceRules: Rule[] | null } };
  return review.status.resourceRules ?? [];
}
