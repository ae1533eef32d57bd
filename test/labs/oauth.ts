/** The token endpoint behind the filters of every request, without sockets. */
import { afterEach } from '@jest/globals';
import type { RequestListener } from 'node:http';
import type { AuditEvent } from '../fakes/audit-event.ts';
import type { AuditLevel } from '../../src/config/audit.ts';
import { sessionsPath } from '../../src/config/names.ts';
import { createFace } from '../../src/http/chain.ts';
import { OpenStreams } from '../../src/http/open-streams.ts';
import type { Route } from '../../src/http/route.ts';
import { oauthRoutes } from '../../src/oauth/index.ts';
import { auditor } from '../fakes/auditor.ts';
import { ask, type Answer, type Ask } from '../fakes/ask.ts';
import { namespace, rightPassword, startAccounts, type Accounts, type AccountsOptions } from './accounts.ts';

export interface Lab extends Accounts {
  readonly app: RequestListener;
  /** Of the audit. */
  readonly events: readonly AuditEvent[];
  /** Asks for a token: the fields of the form, undefined ones left out. */
  readonly token: (fields: Fields, options?: Ask) => Promise<Answer>;
  /** The same at another path. */
  readonly post: (path: string, fields: Fields, options?: Ask) => Promise<Answer>;
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

/** Changes all sessions in the cluster just before the next write of one, as another replica would. */
export function overtakeNextWrite({ client, cluster }: Pick<Accounts, 'client' | 'cluster'>): void {
  client.before = ({ method }) => {
    if (method !== 'PUT') return;
    client.before = () => undefined;
    for (const session of cluster.list(sessionsPath(namespace))) cluster.put(sessionsPath(namespace), { ...session });
  };
}

/** Returns the routes of OAuth. */
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
  /** The audit level of all requests. */
  readonly level?: AuditLevel | undefined;
}

/** Stops after the test. */
export async function createLab(
  authentication: AccountsOptions['authentication'] = {},
  { level = 'Metadata', ...given }: LabOptions = {},
): Promise<Lab> {
  const accounts = await startAccounts({ authentication, ...given });
  made.push(accounts);
  const events: AuditEvent[] = [];
  const app = createFace(routesOf(accounts), {
    authenticator: async () => undefined,
    authorizer: { authorize: async () => ({ allowed: false, reason: '' }) },
    requests: () => accounts.live.value.requests,
    openStreams: new OpenStreams(),
    auditor: auditor({ level }, (event) => events.push(event)),
    log: accounts.log,
  });
  const post: Lab['post'] = (path, fields, { headers = {}, ...options } = {}) =>
    ask(app, path, {
      method: 'POST',
      body: form(fields),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      ...options,
    });
  return { ...accounts, app, events, post, token: (fields, options) => post('/oauth/token', fields, options) };
}
