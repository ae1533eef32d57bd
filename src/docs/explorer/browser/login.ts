/**
 * Logs in through the authorization code flow with PKCE (RFC 9700), or with a pasted access token. Tokens stay in
 * memory.
 */
import { authorizationCode, isAt, LoginProblem, parsePendingLogin, type PendingLogin } from './callback.ts';
import { textOf } from './openapi.ts';

interface Tokens {
  readonly access: string;
  readonly refresh: string | undefined;
  /** Expiry in milliseconds since the epoch; Infinity for a pasted token. */
  readonly expiresAt: number;
}

export interface Site {
  /** URL of the server as the browser sees it; ends with a slash. */
  readonly base: URL;
  readonly issuer: string;
}

interface WhoAmI {
  readonly status: { readonly userInfo: { readonly username: string } };
}

const clientID = 'platform-docs';
const scope = 'openid profile email groups offline_access';
/** Session storage key of the pending login, which is stored while the browser is at the login page. */
const key = 'platform-docs-login';
/** Minimum remaining milliseconds of a token; it is refreshed before use if fewer remain. */
const minLifetime = 30_000;

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

export class ExplorerLogin {
  readonly #site: Site;
  readonly #changed: () => void;
  #tokens: Tokens | undefined;
  #username = '';
  #refreshing: Promise<void> | undefined;

  /** `changed` is called after login and logout. */
  constructor(site: Site, changed: () => void) {
    this.#site = site;
    this.#changed = changed;
  }

  /** True if users can log in at this URL. Logins redirect only to the issuer. */
  get isHere(): boolean {
    return isAt(this.#site.base, this.#site.issuer);
  }

  get isLoggedIn(): boolean {
    return this.#tokens !== undefined;
  }

  get username(): string {
    return this.#username;
  }

  /** Stores a pending login, and opens the login page. */
  async start(hash: string, withCustomResources: boolean): Promise<void> {
    const pending: PendingLogin = { state: random(), verifier: random(), hash, withCustomResources };
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(pending.verifier));
    sessionStorage.setItem(key, JSON.stringify(pending));
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientID,
      redirect_uri: this.#redirectURI,
      scope,
      state: pending.state,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: 'S256',
    });
    location.assign(`${this.#site.issuer}/oauth/authorize?${query.toString()}`);
  }

  /** Exchanges the code, and resolves with the pending login. Throws LoginProblem. */
  async finish(query: URLSearchParams): Promise<PendingLogin> {
    const pending = parsePendingLogin(sessionStorage.getItem(key));
    // A pending login accepts only one response, whether or not it is valid.
    sessionStorage.removeItem(key);
    const code = authorizationCode(query, pending, this.#site.issuer);
    if (!this.isHere || pending === undefined) throw new LoginProblem(`Log in at ${this.#site.issuer}/docs.`);
    const tokens = await this.#requestTokens({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.#redirectURI,
      code_verifier: pending.verifier,
    });
    await this.#accept(tokens);
    return pending;
  }

  /** Logs in with a pasted token. Throws LoginProblem if the token is invalid. */
  async use(token: string): Promise<void> {
    await this.#accept({ access: token, refresh: undefined, expiresAt: Infinity });
  }

  /**
   * Returns the access token, or undefined if nobody is logged in. Throws LoginProblem if the session has expired or
   * was revoked.
   */
  async token(): Promise<string | undefined> {
    const { refresh, expiresAt = 0 } = this.#tokens ?? {};
    if (expiresAt - Date.now() < minLifetime && refresh !== undefined)
      await (this.#refreshing ??= this.#refresh(refresh).finally(() => {
        this.#refreshing = undefined;
      }));
    return this.#tokens?.access;
  }

  /**
   * Forgets the tokens, and revokes them unless they were pasted (RFC 7009). Throws LoginProblem if the revocation
   * fails.
   */
  async end(): Promise<void> {
    const tokens = this.#tokens;
    this.forget();
    if (tokens?.refresh === undefined) return;
    try {
      const { ok, status } = await this.#post('oauth/revoke', { token: tokens.refresh });
      if (!ok) throw new Error(`the server returned ${status}`);
    } catch (error) {
      throw new LoginProblem(
        `You are logged out of this page, but your session could not be revoked: ${messageOf(error)}.`,
      );
    }
  }

  /** Ignores the result if the user has logged out in the meantime. */
  async #refresh(refresh: string): Promise<void> {
    const before = this.#tokens;
    const tokens = await this.#requestTokens({ grant_type: 'refresh_token', refresh_token: refresh });
    if (this.#tokens === before) this.#tokens = tokens;
  }

  forget(): void {
    this.#tokens = undefined;
    this.#username = '';
    this.#changed();
  }

  get #redirectURI(): string {
    return `${this.#site.issuer}/docs/callback`;
  }

  async #requestTokens(fields: Readonly<Record<string, string>>): Promise<Tokens> {
    const before = this.#tokens;
    let response: Response;
    let body: Readonly<Record<string, unknown>>;
    try {
      response = await this.#post('oauth/token', fields);
      body = (await response.json()) as Readonly<Record<string, unknown>>;
    } catch (error) {
      throw new LoginProblem(`Login is temporarily unavailable: ${messageOf(error)}. Try again.`);
    }
    const { access_token: access, refresh_token: refresh, expires_in: seconds } = body;
    if (response.ok && typeof access === 'string') {
      const expiresAt = Date.now() + 1_000 * Number(seconds ?? 0);
      return { access, refresh: typeof refresh === 'string' ? refresh : undefined, expiresAt };
    }
    const reason = textOf(body['error_description']) || textOf(body['error']) || String(response.status);
    // This failure is temporary: the tokens may still be valid.
    if (response.status === 429 || response.status >= 500)
      throw new LoginProblem(`Login is temporarily unavailable: ${reason}. Try again.`);
    if (this.#tokens === before) this.forget();
    throw new LoginProblem(`Your session has ended: ${reason}. Log in again.`);
  }

  /** Looks up the user of the token, and keeps the token. Throws LoginProblem. */
  async #accept(tokens: Tokens): Promise<void> {
    const path = 'kapis/iam.platform.io/v1alpha2/whoami';
    const authorization = `Bearer ${tokens.access}`;
    let problem: string;
    try {
      const response = await this.#fetch(path, { headers: { authorization } });
      const body = (await response.json()) as Partial<WhoAmI> & { readonly message?: unknown };
      if (response.ok) {
        this.#tokens = tokens;
        this.#username = textOf(body.status?.userInfo.username);
        return this.#changed();
      }
      problem = textOf(body.message) || String(response.status);
    } catch (error) {
      problem = messageOf(error);
    }
    throw new LoginProblem(`The access token was rejected: ${problem}.`);
  }

  #post(path: string, fields: Readonly<Record<string, string>>): Promise<Response> {
    return this.#fetch(path, { method: 'POST', body: new URLSearchParams({ ...fields, client_id: clientID }) });
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    return fetch(new URL(path, this.#site.base), { ...init, credentials: 'omit', cache: 'no-store' });
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
