import type { Authenticator } from '../../auth/authenticators/index.ts';
import { PasswordChangeRequired } from '../../auth/authenticators/platform-token.ts';
import type { UserInfo } from '../../auth/user.ts';
import { badRequest, unauthorized } from '../../runtime/errors.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import type { RequestInfo } from '../route.ts';
import { probes } from './access-log.ts';

/** What is served without an identity. */
const openPaths = new Set([
  ...probes,
  '/kapis/version',
  '/docs',
  '/docs/',
  '/docs/callback',
  '/swagger/platform.json',
  '/swagger/platform.v3.json',
]);
const openPrefixes = ['/oauth/', '/.well-known/', '/healthz/', '/livez/', '/readyz/', '/docs/assets/'];

const isOpen = (path: string, alsoOpen: ReadonlySet<string>): boolean =>
  openPaths.has(path) || alsoOpen.has(path) || openPrefixes.some((prefix) => path.startsWith(prefix));

/** What alone may be done by somebody whose password must be changed: that, and to see who they are. */
function changesPassword({ prefix, group, resource, name, subresource, verb }: RequestInfo, user: UserInfo): boolean {
  if (prefix !== 'kapis' || group !== 'iam.platform.io') return false;
  if (resource === 'whoami') return name === '' && verb === 'list';
  const what = `${verb} ${resource}/${subresource}`;
  return (name === '~' || name === user.username) && (what === 'get users/' || what === 'update users/password');
}

/**
 * Every request needs an identity, but on the open paths, where one is used if it is there and good (the names of health checks are
 * shown only to those who have one). The OAuth endpoints authenticate clients by themselves. `awaiting` limits the requests that wait
 * here: it returns the function that ends the wait, and throws 429, which open paths return too.
 */
export const authentication =
  (
    authenticate: Authenticator,
    alsoOpen: ReadonlySet<string>,
    awaiting: (exchange: Exchange) => () => void,
  ): RequestFilter =>
  (exchange) => {
    const { req, path, query, sourceIP } = exchange;
    if (query.has('access_token'))
      throw badRequest(
        'a token in the query would be logged on its way: send it in the header "Authorization: Bearer …"',
        { headers: { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_request"' } },
      );
    if (path.startsWith('/oauth/') || path.startsWith('/.well-known/')) return;
    const open = isOpen(path, alsoOpen);
    if (open && !query.has('verbose')) return;
    const accept = (user: UserInfo | undefined): void => {
      if (user === undefined && !open) throw unauthorized();
      exchange.user = user;
    };
    const refuse = (error: unknown): void => {
      if (error instanceof PasswordChangeRequired && changesPassword(exchange.info, error.user)) accept(error.user);
      else if (!open) throw error;
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
