import type { Authenticator } from '../../auth/authenticators/index.ts';
import { PasswordChangeRequired } from '../../auth/authenticators/platform-token.ts';
import type { UserInfo } from '../../auth/user.ts';
import { badRequest, unauthorized } from '../../runtime/errors.ts';
import { needsIdentity, type Access } from '../access.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';

const readsIdentity = (access: Access, query: URLSearchParams): boolean =>
  needsIdentity(access) || (access.kind === 'optional' && query.has(access.parameter));

/** Whether the route accepts a user who must change their password, because the path names that user or nobody. */
const acceptsPasswordChange = ({ route: { access }, info: { name } }: Exchange, { username }: UserInfo): boolean =>
  access.kind === 'authenticated' && access.passwordChange === true && ['', '~', username].includes(name);

/**
 * Authenticates as `access` of the route demands. `awaiting` limits the requests that wait for it: it returns the function that ends the
 * wait, and throws 429, also where the identity is optional.
 */
export const authentication =
  (authenticate: Authenticator, awaiting: (exchange: Exchange) => () => void): RequestFilter =>
  (exchange) => {
    const { req, query, sourceIP } = exchange;
    if (query.has('access_token'))
      throw badRequest(
        'a token in the query would be logged on its way: send it in the Authorization header, behind Bearer',
        { headers: { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_request"' } },
      );
    const { access } = exchange.route;
    if (!readsIdentity(access, query)) return;
    const accept = (user: UserInfo | undefined): void => {
      if (user === undefined && needsIdentity(access)) throw unauthorized();
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
    // It also rejects when the limit refuses the request, which then does not wait for it.
    pending.catch(() => undefined);
    const leave = awaiting(exchange);
    return pending.then(accept, refuse).finally(leave);
  };
