/**
 * Runs the account service with the filters of every request, without sockets. Users can log in, and kube-apiserver
 * accepts all writes.
 */
import type { RequestListener } from 'node:http';
import type { ResourceAttributes } from '../../src/auth/authorizers/authorizer.ts';
import { createHttpHandler } from '../../src/http/chain.ts';
import { OpenStreams } from '../../src/http/open-streams.ts';
import { iamRoutes } from '../../src/iam/index.ts';
import { auditor } from '../fakes/auditor.ts';
import { sendRequest, type AppResponse } from '../fakes/request.ts';
import { namespace, rightPassword, startAccounts, type Accounts, type AccountsOptions } from './accounts.ts';
import { routesOf } from './oauth.ts';

export const base = '/kapis/iam.platform.io/v1alpha2';

export interface Lab extends Accounts {
  /**
   * Rights of each user, as `verb resource/subresource name`, in all API groups and namespaces. By default, users have
   * no rights.
   */
  readonly rights: Map<string, readonly string[]>;
  /** Logs in with the default password. Throws if the login fails. */
  readonly login: (username: string) => Promise<string>;
  readonly loginResponse: (username: string, password: string) => Promise<AppResponse>;
  /** Sends a request with a token; objects are sent as JSON. */
  readonly call: (
    token: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ) => Promise<AppResponse>;
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
  const app: RequestListener = createHttpHandler(
    [...routesOf(accounts), ...iamRoutes({ ...accounts, authorizer, release })],
    {
      authenticator: accounts.gatewayAuthentication,
      authorizer,
      requests: () => accounts.live.value.requests,
      openStreams: new OpenStreams(),
      auditor: auditor(),
      log: accounts.log,
    },
  );
  const loginResponse: Lab['loginResponse'] = (username, password) =>
    sendRequest(app, '/oauth/token', {
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
    loginResponse,
    async login(username) {
      const response = await loginResponse(username, rightPassword);
      if (response.status !== 200) throw new Error(response.text);
      return String(response.json()['access_token']);
    },
    call: (token, method, path, body, type = 'application/json') => {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      if (body === undefined) return sendRequest(app, `${base}/${path}`, { method, headers: authorization });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      // Node sends the body of a DELETE without Content-Length.
      const headers = { ...authorization, 'content-type': type, 'content-length': Buffer.byteLength(text) };
      return sendRequest(app, `${base}/${path}`, { method, headers, body: text });
    },
  };
}
