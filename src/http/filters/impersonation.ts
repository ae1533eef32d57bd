import { rechecking, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import { requestsImpersonation, impersonatedUser, type ImpersonationRules } from '../../auth/impersonation-request.ts';
import type { UserInfo } from '../../auth/user.ts';
import { forbidden } from '../../runtime/errors.ts';
import { HolderSlots } from '../../runtime/slots.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import type { Gateway } from '../route.ts';

/**
 * Maximum concurrent access reviews for the impersonations of one user. Without this limit, many watches of one user
 * would each start a review at the same time.
 */
const maxReviewsPerUser = 50;

const authentication = 'authentication.k8s.io';
const resourceOf = new Map([
  ['impersonate-user', { group: '', resource: 'users' }],
  ['impersonate-group', { group: '', resource: 'groups' }],
  ['impersonate-uid', { group: authentication, resource: 'uids' }],
]);
const extra = { group: authentication, resource: 'userextras' };

/**
 * Handles kube-apiserver's Impersonate-* headers. Proxied requests act as the impersonated user if the caller is
 * allowed to impersonate. Other requests are refused, because a response without impersonation would contain data that
 * the impersonated user is not allowed to see. The aggregator removes these headers.
 */
export const impersonation = (authorizer: Authorizer, gateway: Gateway | undefined): RequestFilter => {
  const reviews = new HolderSlots('impersonations');
  return (exchange) => {
    const { req, user, isProxied } = exchange;
    if (user === undefined || !requestsImpersonation(req)) return undefined;
    return isProxied && gateway !== undefined
      ? impersonate(exchange, user, { authorizer, ownIdentity: gateway.ownIdentity }, reviews)
      : refuse(exchange, user);
  };
};

async function impersonate(
  exchange: Exchange,
  user: UserInfo,
  rules: ImpersonationRules,
  reviews: HolderSlots,
): Promise<void> {
  const { req } = exchange;
  const release = reviews.take(`user ${user.username}`, maxReviewsPerUser);
  try {
    exchange.impersonated = await impersonatedUser(req, user, rules);
  } finally {
    release();
  }
  if (!exchange.info.isLongRunning) return;
  const check = async (): Promise<void> => {
    await impersonatedUser(req, exchange.user ?? user, { ...rules, authorizer: rechecking(rules.authorizer) });
  };
  exchange.onRecheck(check, () => exchange.abort());
}

function refuse({ req: { headers } }: Exchange, { username }: UserInfo): never {
  const [header = ''] = Object.keys(headers).filter((name) => name.startsWith('impersonate-'));
  const message = `User "${username}" cannot impersonate: only requests that are proxied to kube-apiserver support impersonation`;
  throw forbidden(resourceOf.get(header) ?? extra, String(headers[header]), message);
}
