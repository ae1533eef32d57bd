/** The account service behind the filters of every request, without sockets: people log in, and kube-apiserver lets all pass. */
import type { RequestListener } from 'node:http';
import type { ResourceAttributes } from '../../src/auth/authorizers/authorizer.ts';
import { createFace } from '../../src/http/chain.ts';
import { OpenStreams } from '../../src/http/open-streams.ts';
import { iamRoutes } from '../../src/iam/index.ts';
import { auditor } from '../fakes/auditor.ts';
import { ask, type Answer } from '../fakes/ask.ts';
import { namespace, rightPassword, startAccounts, type Accounts, type AccountsOptions } from './accounts.ts';
import { routesOf } from './oauth.ts';

export const base = '/kapis/iam.platform.io/v1alpha2';

export interface Lab extends Accounts {
  /** Who may do what, in whichever group and namespace: `verb resource/subresource name`; nobody anything at first. */
  readonly rights: Map<string, readonly string[]>;
  /** Logs in with the right password, and fails unless that works. */
  readonly login: (username: string) => Promise<string>;
  readonly loginAnswer: (username: string, password: string) => Promise<Answer>;
  /** A request with a token; an object is sent as JSON. */
  readonly call: (
    token: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ) => Promise<Answer>;
}

export async function createLab(options: AccountsOptions = {}): Promise<Lab> {
  const accounts = await startAccounts(options);
  const rights = new Map<string, readonly string[]>();
  const authorizer = {
    authorize: async ({ username }: { username: string }, attributes: unknown) => {
      const { verb, resource, subresource = '', name = '' } = attributes as ResourceAttributes;
      const wanted = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
      const granted = rights.get(username) ?? [];
      return { allowed: granted.includes(wanted) || granted.includes(`${wanted} ${name}`), reason: '' };
    },
  };
  const release = { namespace, configMap: 'platform-config' };
  const app: RequestListener = createFace([...routesOf(accounts), ...iamRoutes({ ...accounts, authorizer, release })], {
    authenticator: accounts.gatewayAuthentication,
    authorizer,
    requests: () => accounts.live.value.requests,
    openStreams: new OpenStreams(),
    auditor: auditor(),
    log: accounts.log,
  });
  const loginAnswer: Lab['loginAnswer'] = (username, password) =>
    ask(app, '/oauth/token', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'password',
        username,
        password,
        client_id: 'platform',
        client_secret: 'platform',
      }).toString(),
    });
  return {
    ...accounts,
    rights,
    loginAnswer,
    async login(username) {
      const answer = await loginAnswer(username, rightPassword);
      if (answer.status !== 200) throw new Error(answer.text);
      return String(answer.json()['access_token']);
    },
    call: (token, method, path, body, type = 'application/json') => {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      if (body === undefined) return ask(app, `${base}/${path}`, { method, headers: authorization });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      // Node sends the body of a DELETE without its length.
      const headers = { ...authorization, 'content-type': type, 'content-length': Buffer.byteLength(text) };
      return ask(app, `${base}/${path}`, { method, headers, body: text });
    },
  };
}
