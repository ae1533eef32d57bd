/** Who uses the page: logged in with the authorization code flow and PKCE (RFC 9700), or by a token of their own. Tokens are kept in memory alone. */
import { begunOf, codeIn, isAt, LoginProblem, type Begun } from './callback.ts';
import { textOf } from './openapi.ts';

interface Tokens {
  readonly access: string;
  readonly refresh: string | undefined;
  /** Milliseconds since the epoch; Infinity of one that was pasted. */
  readonly expiresAt: number;
}

export interface Site {
  /** Where the server is, for this page; ends with a slash. */
  readonly base: URL;
  readonly issuer: string;
}

interface WhoAmI {
  readonly status: { readonly userInfo: { readonly username: string } };
}

const clientID = 'platform-docs';
const scope = 'openid profile email groups offline_access';
/** In the storage of the tab, while the browser is away to log in. */
const key = 'platform-docs-login';
/** A token that has less life left is exchanged before it is used. Milliseconds. */
const least = 30_000;

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

  /** `changed`: who uses the page is another now. */
  constructor(site: Site, changed: () => void) {
    this.#site = site;
    this.#changed = changed;
  }

  /** People log in at the issuer's own address alone: nowhere else do the tokens belong, nor is the page led back to. */
  get isHere(): boolean {
    return isAt(this.#site.base, this.#site.issuer);
  }

  get isLoggedIn(): boolean {
    return this.#tokens !== undefined;
  }

  get username(): string {
    return this.#username;
  }

  /** Leaves for the login page. */
  async begin(hash: string, withCustomResources: boolean): Promise<void> {
    const begun: Begun = { state: random(), verifier: random(), hash, withCustomResources };
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.verifier));
    sessionStorage.setItem(key, JSON.stringify(begun));
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientID,
      redirect_uri: this.#redirectURI,
      scope,
      state: begun.state,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: 'S256',
    });
    location.assign(`${this.#site.issuer}/oauth/authorize?${query.toString()}`);
  }

  /** Comes back from there, with what was kept over the way. Throws LoginProblem. */
  async finish(query: URLSearchParams): Promise<Begun> {
    const begun = begunOf(sessionStorage.getItem(key));
    // For one answer only, whatever it is.
    sessionStorage.removeItem(key);
    const code = codeIn(query, begun, this.#site.issuer);
    if (!this.isHere || begun === undefined) throw new LoginProblem(`People log in at ${this.#site.issuer} alone.`);
    const tokens = await this.#ask({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.#redirectURI,
      code_verifier: begun.verifier,
    });
    await this.#introduce(tokens);
    return begun;
  }

  /** Throws LoginProblem if nobody is known by it. */
  async use(token: string): Promise<void> {
    await this.#introduce({ access: token, refresh: undefined, expiresAt: Infinity });
  }

  /** The access token; undefined if nobody is logged in. Throws LoginProblem if the login is over. */
  async token(): Promise<string | undefined> {
    const { refresh, expiresAt = 0 } = this.#tokens ?? {};
    if (expiresAt - Date.now() < least && refresh !== undefined)
      await (this.#refreshing ??= this.#refresh(refresh).finally(() => {
        this.#refreshing = undefined;
      }));
    return this.#tokens?.access;
  }

  /** The tokens are forgotten, and ended at the server if they are the page's own (RFC 7009). Throws LoginProblem if it cannot be told. */
  async end(): Promise<void> {
    const tokens = this.#tokens;
    this.forget();
    if (tokens?.refresh === undefined) return;
    try {
      const { ok, status } = await this.#post('oauth/revoke', { token: tokens.refresh });
      if (!ok) throw new Error(`the server answers ${status}`);
    } catch (error) {
      throw new LoginProblem(
        `The tokens are forgotten here, but the server could not be told to end them: ${messageOf(error)}.`,
      );
    }
  }

  /** Not of who has logged out meanwhile. */
  async #refresh(refresh: string): Promise<void> {
    const before = this.#tokens;
    const tokens = await this.#ask({ grant_type: 'refresh_token', refresh_token: refresh });
    if (this.#tokens === before) this.#tokens = tokens;
  }

  /** As when the server no longer takes the token. */
  forget(): void {
    this.#tokens = undefined;
    this.#username = '';
    this.#changed();
  }

  get #redirectURI(): string {
    return `${this.#site.issuer}/docs/callback`;
  }

  async #ask(fields: Readonly<Record<string, string>>): Promise<Tokens> {
    const before = this.#tokens;
    let answer: Response;
    let body: Readonly<Record<string, unknown>>;
    try {
      answer = await this.#post('oauth/token', fields);
      body = (await answer.json()) as Readonly<Record<string, unknown>>;
    } catch (error) {
      throw new LoginProblem(`The login cannot go on now: ${messageOf(error)}. Try again.`);
    }
    const { access_token: access, refresh_token: refresh, expires_in: seconds } = body;
    if (answer.ok && typeof access === 'string') {
      const expiresAt = Date.now() + 1_000 * Number(seconds ?? 0);
      return { access, refresh: typeof refresh === 'string' ? refresh : undefined, expiresAt };
    }
    const why = textOf(body['error_description']) || textOf(body['error']) || String(answer.status);
    // Another time it may do so: busy is not wrong.
    if (answer.status === 429 || answer.status >= 500) throw new LoginProblem(`The login cannot go on now: ${why}.`);
    if (this.#tokens === before) this.forget();
    throw new LoginProblem(`Your login is over: ${why}. Log in again.`);
  }

  /** Asks who it is that has the token, and uses it from now on. Throws LoginProblem. */
  async #introduce(tokens: Tokens): Promise<void> {
    const path = 'kapis/iam.platform.io/v1alpha2/whoami';
    const authorization = `Bearer ${tokens.access}`;
    let problem: string;
    try {
      const answer = await this.#fetch(path, { headers: { authorization } });
      const body = (await answer.json()) as Partial<WhoAmI> & { readonly message?: unknown };
      if (answer.ok) {
        this.#tokens = tokens;
        this.#username = textOf(body.status?.userInfo.username);
        return this.#changed();
      }
      problem = textOf(body.message) || String(answer.status);
    } catch (error) {
      problem = messageOf(error);
    }
    throw new LoginProblem(`Nobody is known by this token: ${problem}.`);
  }

  #post(path: string, fields: Readonly<Record<string, string>>): Promise<Response> {
    return this.#fetch(path, { method: 'POST', body: new URLSearchParams({ ...fields, client_id: clientID }) });
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    return fetch(new URL(path, this.#site.base), { ...init, credentials: 'omit', cache: 'no-store' });
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
