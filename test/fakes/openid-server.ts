/** OpenID provider in the process of the test. The provider exchanges any code for the tokens that the test has set. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { craftJWT } from './jwt.ts';
import { keyMaker } from './signing-keys.ts';

export const clientID = 'platform';

interface Response {
  readonly status?: number;
  readonly body: unknown;
}

interface Request {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly form: Readonly<Record<string, string>>;
}

export class OpenIDServer {
  issuer = '';
  caCertificate = '';
  /** Requests except those to /keys. */
  readonly requests: Request[] = [];
  /** Overrides of the provider's metadata. */
  metadata: Readonly<Record<string, unknown>> = {};
  /** Overrides of the claims and the header of the id_token. */
  claims: Readonly<Record<string, unknown>> = {};
  header: Readonly<Record<string, unknown>> = {};
  userinfo: Readonly<Record<string, unknown>> = { sub: '1' };
  /** Key that signs the id_token; undefined for none. */
  key: KeyObject | undefined;
  /** Awaited before each response. If the result is defined, it replaces the response. */
  respond: (path: string) => Response | undefined | Promise<Response | undefined> = () => undefined;
  #server = createServer();
  #published: object = {};

  async start(): Promise<void> {
    const authority = await createAuthority('openid-provider-ca');
    const { certificate, key } = await authority.issue({ commonName: 'openid', server: ['127.0.0.1'] });
    this.caCertificate = authority.certificate;
    this.key = createPrivateKey(await keyMaker()('RS256'));
    this.#published = { ...createPublicKey(this.key).export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' };
    this.#server = createServer({ cert: certificate, key }, (req, res) => void this.#serve(req, res));
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.issuer = `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Returns the requests to a path. */
  to(path: string): Request[] {
    return this.requests.filter((request) => request.path === path);
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? '';
    const form = Object.fromEntries(new URLSearchParams(await text(req)));
    if (path !== '/keys') this.requests.push({ path, authorization: req.headers.authorization, form });
    const { status = 200, body } = (await this.respond(path)) ?? this.#response(path);
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  #response(path: string): Response {
    if (path === '/.well-known/openid-configuration') {
      const endpoints = Object.fromEntries(
        ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint'].map((name) => [
          name,
          `${this.issuer}/${name.replace('_endpoint', '')}`,
        ]),
      );
      return { body: { issuer: this.issuer, jwks_uri: `${this.issuer}/keys`, ...endpoints, ...this.metadata } };
    }
    if (path === '/keys') return { body: { keys: [this.#published] } };
    if (path === '/token')
      return { body: { access_token: 'an-access-token', token_type: 'Bearer', ...this.#idToken() } };
    if (path === '/userinfo') return { body: this.userinfo };
    return { status: 404, body: {} };
  }

  #idToken(): object {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: this.issuer, aud: clientID, sub: '1', iat: now, exp: now + 600, ...this.claims };
    return { id_token: craftJWT({ alg: 'RS256', kid: 'one', ...this.header }, claims, this.key) };
  }
}
