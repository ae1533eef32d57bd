/**
 * `platform-apiserver credential`: kubectl's credential plugin (client.authentication.k8s.io/v1). Prints a token that is good for a while,
 * refreshes it when it is not, and has somebody log in when it cannot.
 */
import { iamAPIVersion } from '../../config/names.ts';
import { readFile } from 'node:fs/promises';
import { parseCredentialFlags, UsageError, type CredentialFlags } from '../../config/flags.ts';
import { tokensOf, type TokenServerResponse, shown } from './answers.ts';
import { AuthorizationServer, OAuthRefusal, type FormFields } from './authorization-server.ts';
import { execCredential, execInfoOf, type ExecInfo } from './exec-info.ts';
import { logins, type TerminalLogin } from './logins.ts';
import { cacheFile, forgetTokens, readTokens, writeTokens, type CachedTokens } from './token-cache.ts';

/** A token that ends sooner is not worth to begin with. Milliseconds. */
const leastLife = 30_000;
/**
 * For so long a token is good unseen. Its session may have ended since, or the password have been changed: kubectl would present it until
 * it expires, and nobody be asked to log in. Milliseconds.
 */
const unseen = 60_000;
/** Writes out what kubectl tells the plugin of its cluster. */
const authorityOfCluster =
  "kubectl config view --raw --minify --flatten -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d";
const nothing: TokenServerResponse = {};

/** Returns the exit code. Throws UsageError. */
export async function credential(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const flags = parseCredentialFlags(argv);
  const info = execInfoOf(environment['KUBERNETES_EXEC_INFO']);
  try {
    const plugin = await Plugin.of(flags, info);
    if (flags.logout) await plugin.logOut();
    else console.log(await plugin.credential());
    return 0;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    tell(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** Standard output is kubectl's. What is told may be what a server said. */
const tell = (text: string): void => console.error(`credential: ${shown(text)}`);

class Plugin {
  readonly #flags: CredentialFlags;
  readonly #interactive: boolean;
  readonly #url: string;
  readonly #hasCA: boolean;
  readonly #server: AuthorizationServer;
  readonly #file: string;

  constructor(flags: CredentialFlags, interactive: boolean, url: string, ca: string | undefined) {
    this.#flags = flags;
    this.#interactive = interactive;
    this.#url = url;
    this.#hasCA = ca !== undefined;
    this.#server = new AuthorizationServer(url, ca);
    this.#file = cacheFile([new URL(url).origin, flags.login, flags.username ?? '', flags.audience ?? '']);
  }

  static async of(flags: CredentialFlags, info: ExecInfo): Promise<Plugin> {
    const url = flags.server ?? info.server;
    if (url === undefined)
      throw new UsageError(
        'give --server, or provideClusterInfo: true in the kubeconfig if its cluster is the platform',
      );
    // That of the cluster is for the cluster: another server may have another.
    const ca =
      flags.caFile === undefined
        ? flags.server === undefined
          ? info.ca
          : undefined
        : await readFile(flags.caFile, 'utf8');
    return new Plugin(flags, info.interactive, url, ca);
  }

  async credential(): Promise<string> {
    const tokens = await this.#tokens();
    return execCredential(tokens.accessToken, tokens.expiresAt);
  }

  async logOut(): Promise<void> {
    const cached = await readTokens(this.#file, tell);
    await forgetTokens(this.#file);
    if (cached !== undefined)
      await this.#server.post('/oauth/revoke', { token: cached.refreshToken, ...this.#login.client });
  }

  async #tokens(): Promise<CachedTokens> {
    const cached = await readTokens(this.#file, tell);
    return (cached && (await this.#renewed(cached))) ?? (await this.#logIn());
  }

  /** Undefined if somebody must log in. */
  async #renewed(cached: CachedTokens): Promise<CachedTokens | undefined> {
    const now = Date.now();
    const isGood = cached.expiresAt - now > leastLife;
    if (isGood && Math.abs(now - cached.obtainedAt) < unseen) return cached;
    try {
      return await this.#ask({ grant_type: 'refresh_token', refresh_token: cached.refreshToken });
    } catch (error) {
      if (error instanceof OAuthRefusal && error.error === 'invalid_grant') return undefined;
      // Who cannot ask the platform now may still reach what takes its tokens.
      if (isGood) return cached;
      throw error;
    }
  }

  async #logIn(): Promise<CachedTokens> {
    if (!this.#interactive) throw new Error(`nobody is there to log in: run in a terminal first: ${this.#command}`);
    const said = await this.#login.logIn(this.#server, this.#flags.username ?? '');
    await this.#demandRights(this.#tokensOf(said));
    // What a login gives is for the platform itself.
    const { audience } = this.#flags;
    return audience === undefined
      ? await this.#keep(said)
      : await this.#ask({ grant_type: 'refresh_token', refresh_token: String(said['refresh_token']) });
  }

  /** A browser has people change their password where they must; with a token of theirs before that nothing can be done. */
  async #demandRights({ accessToken }: CachedTokens): Promise<void> {
    if (this.#flags.login !== 'password') return;
    // Whoever cannot be asked is let go on: without rights they are told so by whatever they do next.
    const { spec } = await this.#server.get(`/kapis/${iamAPIVersion}/users/~`, accessToken).catch(() => nothing);
    if ((spec as { passwordChangeRequired?: unknown } | undefined)?.passwordChangeRequired === true)
      throw new Error(`the password must be changed first, in a browser: ${new URL('/oauth/login', this.#url).href}`);
  }

  async #ask(form: FormFields): Promise<CachedTokens> {
    const { audience } = this.#flags;
    const whole = { ...form, ...(audience === undefined ? {} : { audience }), ...this.#login.client };
    return await this.#keep(await this.#server.post('/oauth/token', whole));
  }

  async #keep(said: TokenServerResponse): Promise<CachedTokens> {
    const tokens = this.#tokensOf(said);
    await writeTokens(this.#file, tokens);
    return tokens;
  }

  #tokensOf(said: TokenServerResponse): CachedTokens {
    const tokens = tokensOf(said, Date.now());
    if (tokens === undefined) throw new Error(`${this.#url} answers like no server of the platform`);
    return tokens;
  }

  /** What logs in for the next call from here, by hand. */
  get #command(): string {
    const { caFile, login, username, audience } = this.#flags;
    // What kubectl tells of its cluster nobody tells at a terminal.
    const isClusters = caFile === undefined && this.#hasCA;
    const values = { server: this.#url, 'ca-file': isClusters ? 'FILE' : caFile, login, username, audience };
    const given = Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}=${value}`],
    );
    const hint = isClusters ? `, where FILE has the CA of the kubeconfig's cluster: ${authorityOfCluster} >FILE` : '';
    return `platform-apiserver credential ${given.join(' ')}${hint}`;
  }

  get #login(): TerminalLogin {
    return logins[this.#flags.login];
  }
}
