import { rechecking, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import { asksToImpersonate, impersonatedUser } from '../../auth/impersonation-request.ts';
import type { UserInfo } from '../../auth/user.ts';
import { forbidden } from '../../runtime/errors.ts';
import { HolderSlots } from '../../runtime/holder-slots.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';

/** Each asks about one name after the other: watches, of which a user may have many, must not be as many questions at once. */
const mostReviewsPerUser = 50;

const authentication = 'authentication.k8s.io';
const what = new Map([
  ['impersonate-user', { group: '', resource: 'users' }],
  ['impersonate-group', { group: '', resource: 'groups' }],
  ['impersonate-uid', { group: authentication, resource: 'uids' }],
]);
const extra = { group: authentication, resource: 'userextras' };

/**
 * Who sends these headers of kube-apiserver's wants what another may see, and must not be shown what they may see themselves: where
 * requests are passed on they are who they ask to be, if they may, and elsewhere they are refused. A request through the aggregator has
 * none left.
 */
export const impersonation = (authorizer: Authorizer): RequestFilter => {
  const reviews = new HolderSlots('impersonations');
  return (exchange) => {
    const { req, user, isProxied } = exchange;
    if (user === undefined || !asksToImpersonate(req)) return undefined;
    return isProxied ? become(exchange, user, authorizer, reviews) : refuse(exchange, user);
  };
};

async function become(exchange: Exchange, user: UserInfo, authorizer: Authorizer, reviews: HolderSlots): Promise<void> {
  const { req } = exchange;
  const giveBack = reviews.take(`user ${user.username}`, mostReviewsPerUser);
  try {
    exchange.impersonated = await impersonatedUser(req, user, authorizer);
  } finally {
    giveBack();
  }
  if (!exchange.info.isLongRunning) return;
  const check = async (): Promise<void> => {
    await impersonatedUser(req, exchange.user ?? user, rechecking(authorizer));
  };
  exchange.onRecheck(check, () => exchange.abort());
}

function refuse({ req: { headers } }: Exchange, { username }: UserInfo): never {
  const [header = ''] = Object.keys(headers).filter((name) => name.startsWith('impersonate-'));
  const why = `User "${username}" cannot impersonate: this server answers as the caller alone`;
  throw forbidden(what.get(header) ?? extra, String(headers[header]), why);
}
