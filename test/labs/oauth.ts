/** Runs the OAuth endpoints with the filters of every request, without sockets. */
import { afterEach } from '@jest/globals';
import type { RequestListener } from 'node:http';
import type { AuditEvent } from '../fakes/audit-event.ts';
import type { AuditLevel } from '../../src/config/audit.ts';
import { sessionsPath } from '../../src/config/names.ts';
import { createHttpHandler } from '../../src/http/chain.ts';
import { OpenStreams } from '../../src/http/open-streams.ts';
import type { Route } from '../../src/http/route.ts';
import { oauthRoutes } from '../../src/oauth/index.ts';
import { auditor } from '../fakes/auditor.ts';
import { sendRequest, type AppResponse, type AppRequest } from '../fakes/request.ts';
import { namespace, rightPassword, startAccounts, type Accounts, type AccountsOptions } from './accounts.ts';

export interface Lab extends Accounts {
  readonly app: RequestListener;
  /** Events of the audit log. */
  readonly events: readonly AuditEvent[];
  /** Sends a token request with these form fields; undefined fields are omitted. */
  readonly token: (fields: Fields, options?: AppRequest) => Promise<AppResponse>;
  /** Sends a form to another path. */
  readonly post: (path: string, fields: Fields, options?: AppRequest) => Promise<AppResponse>;
}

export type Fields = Readonly<Record<string, string | undefined>>;

export const asClient = { client_id: 'platform', client_secret: 'platform' };
export const login = { grant_type: 'password', username: 'alice', password: rightPassword, ...asClient };

export const refreshWith = (token: unknown): Fields => ({
  grant_type: 'refresh_token',
  refresh_token: String(token),
  ...asClient,
});

const form = (fields: Fields): string =>
  new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])),
  ).toString();

/** Changes all sessions in the cluster just before the next write of a session, as another replica could do. */
export function overtakeNextWrite({ client, cluster }: Pick<Accounts, 'client' | 'cluster'>): void {
  client.before = ({ method }) => {
    if (method !== 'PUT') return;
    client.before = () => undefined;
    for (const session of cluster.list(sessionsPath(namespace))) cluster.put(sessionsPath(namespace), { ...session });
  };
}

/** Returns the OAuth routes. */
export const routesOf = (accounts: Accounts): readonly Route[] =>
  oauthRoutes({
    ...accounts,
    authenticator: accounts.gatewayAuthentication,
    issuer: () => accounts.live.value.authentication.issuer,
  });

const made: Accounts[] = [];
afterEach(async () => {
  await Promise.all(made.splice(0).map((one) => one.stop()));
});

interface LabOptions extends Pick<AccountsOptions, 'log' | 'providerTypes'> {
  /** Audit level of all requests. */
  readonly level?: AuditLevel | undefined;
}

/** Returns a lab that is stopped after the test. */
export async function createLab(
  authentication: AccountsOptions['authentication'] = {},
  { level = 'Metadata', ...given }: LabOptions = {},
): Promise<Lab> {
  const accounts = await startAccounts({ authentication, ...given });
  made.push(accounts);
  const events: AuditEvent[] = [];
  const app = createHttpHandler(routesOf(accounts), {
    authenticator: async () => undefined,
    authorizer: { authorize: async () => ({ allowed: false, reason: '' }) },
    requests: () => accounts.live.value.requests,
    openStreams: new OpenStreams(),
    auditor: auditor({ level }, (event) => events.push(event)),
    log: accounts.log,
  });
  const post: Lab['post'] = (path, fields, { headers = {}, ...options } = {}) =>
    sendRequest(app, path, {
      method: 'POST',
      body: form(fields),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      ...options,
    });
  return { ...accounts, app, events, post, token: (fields, options) => post('/oauth/token', fields, options) };
}
