import type { Authenticator } from '../../auth/authenticators/index.ts';
import { unsupportedCredentials } from '../../auth/authenticators/bearer-credentials.ts';
import { PasswordChangeRequired } from '../../auth/authenticators/platform-token.ts';
import type { UserInfo } from '../../auth/user.ts';
import { badRequest, unauthorized } from '../../runtime/errors.ts';
import { needsIdentity, type Access } from '../access.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';

const readsIdentity = (access: Access, query: URLSearchParams): boolean =>
  needsIdentity(access) || (access.kind === 'optional' && query.has(access.parameter));

/** Returns true if the route accepts a user who must change their password, and the path names that user or no user. */
const acceptsPasswordChange = ({ route: { access }, info: { name } }: Exchange, { username }: UserInfo): boolean =>
  access.kind === 'authenticated' && access.passwordChange === true && ['', '~', username].includes(name);

/**
 * Authenticates the caller as `access` of the route requires. `awaiting` limits the requests that wait for
 * authentication. `awaiting` returns the function that ends the wait, or throws 429, even if authentication is
 * optional.
 */
export const authentication =
  (authenticate: Authenticator, awaiting: (exchange: Exchange) => () => void): RequestFilter =>
  (exchange) => {
    const { req, query, sourceIP } = exchange;
    if (query.has('access_token'))
      throw badRequest(
        'access_token is not accepted in the query, because proxies log URLs; send Authorization: Bearer <token>',
        { headers: { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_request"' } },
      );
    const { access } = exchange.route;
    if (!readsIdentity(access, query)) return;
    const accept = (user: UserInfo | undefined): void => {
      if (user === undefined && needsIdentity(access))
        throw unauthorized(unsupportedCredentials(req.headers.authorization));
      exchange.user = user;
    };
    const refuse = (error: unknown): void => {
      if (error instanceof PasswordChangeRequired && acceptsPasswordChange(exchange, error.user)) accept(error.user);
      else if (needsIdentity(access)) throw error;
    };
    let pending: Promise<UserInfo | undefined>;
    try {
      const found = authenticate(req, sourceIP);
      if (!(found instanceof Promise)) return accept(found);
      pending = found;
    } catch (error) {
      return refuse(error);
    }
    // If the limit refuses the request, no other code handles a rejection of `pending`.
    pending.catch(() => undefined);
    const leave = awaiting(exchange);
    return pending.then(accept, refuse).finally(leave);
  };
