/** The token endpoint behind the filters of every request, without sockets. */
import { afterEach } from '@jest/globals';
import type { RequestListener } from 'node:http';
import type { AuditEvent } from '../fakes/audit-event.ts';
import type { AuditLevel } from '../../src/config/audit.ts';
import { sessionsPath } from '../../src/config/names.ts';
import { createFace } from '../../src/http/chain.ts';
import { OpenWatches } from '../../src/http/open-streams.ts';
import { createLogger, type Logger } from '../../src/runtime/logger.ts';
import { auditor } from '../fakes/auditor.ts';
import { ask, type Answer, type Ask } from '../fakes/ask.ts';
import { createPlatform, namespace, rightPassword, type Platform, type PlatformOptions } from '../fakes/platform.ts';

export interface Lab extends Platform {
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
export function overtakeNextWrite({ client, cluster }: Pick<Platform, 'client' | 'cluster'>): void {
  client.before = ({ method }) => {
    if (method !== 'PUT') return;
    client.before = () => undefined;
    for (const session of cluster.list(sessionsPath(namespace))) cluster.put(sessionsPath(namespace), { ...session });
  };
}

const made: Platform[] = [];
afterEach(() => {
  for (const one of made.splice(0)) one.stop();
});

/** Ends with the test. */
export async function createLab(
  authentication: Readonly<Record<string, unknown>> = {},
  log: Logger = createLogger({ silent: true }),
  lookUp?: PlatformOptions['lookUp'],
  level: AuditLevel = 'Metadata',
): Promise<Lab> {
  const platform = await createPlatform({
    authentication,
    log,
    ...(lookUp === undefined ? {} : { lookUp }),
  });
  made.push(platform);
  const events: AuditEvent[] = [];
  const app = createFace(platform.routes, {
    authenticator: async () => undefined,
    authorizer: { authorize: async () => ({ allowed: false, reason: '' }) },
    requests: () => platform.live.value.requests,
    watches: new OpenWatches(),
    auditor: auditor({ level }, (event) => events.push(event)),
    log,
  });
  const post: Lab['post'] = (path, fields, { headers = {}, ...options } = {}) =>
    ask(app, path, {
      method: 'POST',
      body: form(fields),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      ...options,
    });
  return { ...platform, app, events, post, token: (fields, options) => post('/oauth/token', fields, options) };
}
