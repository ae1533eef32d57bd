/**
 * A real OpenID provider, node-oidc-provider, in the process of the test. The provider logs in any user that the test
 * names, without interaction.
 */
import jwt from 'jsonwebtoken';
import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { Browser } from '../../fakes/browser.ts';
import { call } from './http.ts';
import { remember } from './secrets.ts';

export interface OpenIDProvider {
  readonly issuer: string;
  readonly caCertificate: string;
  readonly clientSecret: string;
  /** Claims of each user, by subject. */
  readonly people: Map<string, Readonly<Record<string, unknown>>>;
  /** Follows the redirect to the provider, logs in as `subject`, and returns the query of the redirect back. */
  login(url: string, subject: string): Promise<URLSearchParams>;
  /**
   * Makes the token endpoint return an id_token with these claims, signed by `key`. Default: the key of the provider.
   */
  forge(claims: object | undefined, key?: KeyObject): void;
  stop(): Promise<void>;
}

const clientID = 'platform';

export async function startOpenIDProvider(redirectURIs: readonly string[]): Promise<OpenIDProvider> {
  const authority = await createAuthority('openid-provider-ca');
  const { certificate, key } = await authority.issue({ commonName: 'openid', server: ['127.0.0.1'] });
  const server = createServer({ cert: certificate, key });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clientSecret = `openid ${randomUUID()}`.replace(' ', '-');
  remember(clientSecret);
  const people: OpenIDProvider['people'] = new Map();
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = 'one';
  let subject = '';
  let forged: string | undefined;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientID, client_secret: clientSecret, redirect_uris: [...redirectURIs] }],
    jwks: { keys: [{ ...keys.privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] },
    cookies: { keys: [randomUUID()] },
    claims: { profile: ['preferred_username', 'name'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false } },
    ttl: { AccessToken: 600, AuthorizationCode: 60, IdToken: 600, Interaction: 600, Session: 600, Grant: 600 },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId, ...people.get(accountId) }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: clientID, accountId: oidc.session?.accountId ?? '' });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  server.on('request', (req, res) => {
    if (req.url?.startsWith('/interaction/') === true)
      void provider.interactionFinished(req, res, { login: { accountId: subject } });
    else if (forged !== undefined && req.url === '/token')
      res
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ access_token: 'a', token_type: 'Bearer', id_token: forged }));
    else void serve(req, res);
  });
  return {
    issuer,
    caCertificate: authority.certificate,
    clientSecret,
    people,
    async login(url, user) {
      subject = user;
      const browser = new Browser(async (path, { headers = {} }) => {
        const response = await call(`${issuer}${path}`, {
          headers: headers as Record<string, string>,
          authority: authority.certificate,
        });
        const location = response.headers.location?.replace(issuer, '');
        const all = { ...response.headers, ...(location === undefined ? {} : { location }) };
        return { status: response.status, headers: all, text: response.text };
      });
      const { headers, text } = await browser.open(url.slice(issuer.length));
      if (headers.location === undefined) throw new Error(`the provider did not redirect: ${text}`);
      return new URL(headers.location).searchParams;
    },
    forge(claims, signing = keys.privateKey) {
      forged =
        claims && jwt.sign({ iss: issuer, aud: clientID, ...claims }, signing, { algorithm: 'RS256', keyid: kid });
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
