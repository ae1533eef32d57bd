/** Creates a listener that serves the test's own routes behind the filters of production. */
import type { Attributes } from '../../src/auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../src/auth/user.ts';
import { invalidToken } from '../../src/runtime/errors.ts';
import {
  anonymous,
  authenticated,
  authorizedByPath,
  authorizedByResource,
  type Access,
} from '../../src/http/access.ts';
import { createHttpHandler, type ChainOptions } from '../../src/http/chain.ts';
import type { HttpHandler } from '../../src/http/listeners/http-handler.ts';
import { OpenStreams } from '../../src/http/open-streams.ts';
import type { RequestContext, Route } from '../../src/http/route.ts';
import { createLogger } from '../../src/runtime/logger.ts';
import { auditor } from '../fakes/auditor.ts';
import type { AppRequest } from '../fakes/request.ts';
import { configuration } from '../fakes/configuration.ts';

export const resourcePath = '/kapis/resources.platform.io/v1alpha3/nodes';
export const aggregatedPath = '/apis/resources.platform.io/v1alpha3/nodes';

const oauthPaths = /^\/(?:oauth|\.well-known)\//;

/** Returns the access that the route of this path requires in production. */
function accessOf(path: string): Access {
  if (/^\/(?:livez|readyz|healthz)/.test(path)) return { kind: 'optional', parameter: 'verbose' };
  if (oauthPaths.test(path) || /^(?:\/kapis)?\/version$/.test(path)) return anonymous;
  if (path === '/metrics') return authorizedByPath;
  return path.startsWith('/apis/') ? authorizedByResource : authenticated;
}

export interface Lab {
  readonly app: HttpHandler;
  /** Requests that reached the handler of the default routes. */
  readonly handled: RequestContext[];
  /** Attributes passed to the authorizer. */
  readonly reviews: Attributes[];
}

export interface LabOptions extends Partial<ChainOptions> {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly routes?: readonly Route[];
  readonly allowed?: boolean;
}

/** Authenticates the user whose name is the bearer token. Rejects the token "bad". */
const authenticator: ChainOptions['authenticator'] = async ({ headers }): Promise<UserInfo | undefined> => {
  const username = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
  if (username === 'bad') throw invalidToken();
  return username === undefined ? undefined : { username, groups: [], via: 'token' };
};

export const as = (username: string, headers: Readonly<Record<string, string>> = {}): Pick<AppRequest, 'headers'> => ({
  headers: { authorization: `Bearer ${username}`, ...headers },
});

export function face({ settings = {}, routes, allowed = true, ...options }: LabOptions = {}): Lab {
  const handled: RequestContext[] = [];
  const reviews: Attributes[] = [];
  const resources = [resourcePath, aggregatedPath].flatMap((path) => [path, `${path}/:name`]);
  const paths = [...resources, '/apis', '/metrics', '/livez', '/kapis/version', '/oauth/open', '/'];
  const defaultRoutes = paths.map((path): Route => ({
    method: 'get',
    path,
    summary: '',
    access: accessOf(path),
    handler: (_req, res, context) => {
      handled.push(context);
      res.end('answered');
    },
  }));
  const { requests } = configuration({ requests: settings });
  const app = createHttpHandler(routes ?? defaultRoutes, {
    authenticator,
    authorizer: {
      authorize: async (_, attributes) => {
        reviews.push(attributes);
        return { allowed, reason: '' };
      },
    },
    requests: () => requests,
    openStreams: new OpenStreams(),
    auditor: auditor(),
    log: createLogger({ silent: true }),
    ...options,
  });
  return { app, handled, reviews };
}

/** Returns a route with this handler. */
export const doing = (handler: Route['handler'], path = '/kapis/version', method: Route['method'] = 'get'): Route => ({
  method,
  path,
  summary: '',
  access: accessOf(path),
  handler,
});
