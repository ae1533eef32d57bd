/**
 * `platform-apiserver credential`: credential plugin for kubectl (client.authentication.k8s.io/v1). Prints a valid
 * token. Refreshes an expired token, or lets the user log in.
 */
import { iamAPIVersion } from '../../config/names.ts';
import { readFlagFile } from '../../config/flag-file.ts';
import { parseCredentialFlags, UsageError, type CredentialFlags } from '../../config/flags.ts';
import { tokensOf, type TokenServerResponse, terminalSafe } from './responses.ts';
import { AuthorizationServer, OAuthRefusal, type FormFields } from './authorization-server.ts';
import { execCredential, execInfoOf, type ExecInfo } from './exec-info.ts';
import { logins, type TerminalLogin } from './logins.ts';
import { cacheFile, forgetTokens, readTokens, writeTokens, type CachedTokens } from './token-cache.ts';

/** Minimum remaining milliseconds of a token; it is refreshed before use if fewer remain. */
const minLife = 30_000;
/**
 * Milliseconds for which a cached token is used without a refresh. The session of the token may have been revoked in
 * the meantime. Without this limit, kubectl would send the token until its expiry, and never prompt the user to log in.
 */
const maxUnchecked = 60_000;
/** Shell command that prints the CA of kubectl's cluster, which kubectl passes to the plugin. */
const authorityOfCluster =
  "kubectl config view --raw --minify --flatten -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d";
const nothing: TokenServerResponse = {};

/** Runs the credential plugin. Returns the exit code. Throws UsageError. */
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
    report(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** Writes to standard error, because kubectl reads standard output. The text may come from a server. */
const report = (text: string): void => console.error(`credential: ${terminalSafe(text)}`);

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
        'set --server, or provideClusterInfo: true in the kubeconfig if its cluster is the platform',
      );
    // The CA of kubectl's cluster does not apply to another server.
    const ca =
      flags.caFile === undefined
        ? flags.server === undefined
          ? info.ca
          : undefined
        : await readFlagFile('--ca-file', flags.caFile);
    return new Plugin(flags, info.interactive, url, ca);
  }

  async credential(): Promise<string> {
    const tokens = await this.#tokens();
    return execCredential(tokens.accessToken, tokens.expiresAt);
  }

  async logOut(): Promise<void> {
    const cached = await readTokens(this.#file, report);
    if (cached === undefined)
      throw new Error(
        `no login at ${this.#url} is cached for these flags; use the same --login, --username and --audience as for the login`,
      );
    await forgetTokens(this.#file);
    await this.#server.post('/oauth/revoke', { token: cached.refreshToken, ...this.#login.client });
  }

  async #tokens(): Promise<CachedTokens> {
    const cached = await readTokens(this.#file, report);
    return (cached && (await this.#renewed(cached))) ?? (await this.#logIn());
  }

  /** Returns the cached tokens or refreshed tokens; undefined if the user must log in. */
  async #renewed(cached: CachedTokens): Promise<CachedTokens | undefined> {
    const now = Date.now();
    const isValid = cached.expiresAt - now > minLife;
    if (isValid && Math.abs(now - cached.obtainedAt) < maxUnchecked) return cached;
    try {
      return await this.#refresh({ grant_type: 'refresh_token', refresh_token: cached.refreshToken });
    } catch (error) {
      if (error instanceof OAuthRefusal && error.error === 'invalid_grant') return undefined;
      // Even while the platform is unreachable, kube-apiserver may accept the cached token.
      if (isValid) return cached;
      throw error;
    }
  }

  async #logIn(): Promise<CachedTokens> {
    if (!this.#interactive || !this.#login.canPrompt())
      throw new Error(`login required, but there is no terminal; first run this in a terminal: ${this.#command}`);
    const response = await this.#login.logIn(this.#server, this.#flags.username ?? '');
    await this.#assertPasswordChanged(this.#tokensOf(response));
    // A login returns tokens for the platform itself. Tokens for another audience require a refresh.
    const { audience } = this.#flags;
    return audience === undefined
      ? await this.#save(response)
      : await this.#refresh({ grant_type: 'refresh_token', refresh_token: String(response['refresh_token']) });
  }

  /** Throws if the user must change the password first, because a user cannot change the password at the terminal. */
  async #assertPasswordChanged({ accessToken }: CachedTokens): Promise<void> {
    if (this.#flags.login !== 'password') return;
    // A failure is ignored: a user without rights gets an error from the next request.
    const { spec } = await this.#server.get(`/kapis/${iamAPIVersion}/users/~`, accessToken).catch(() => nothing);
    if ((spec as { passwordChangeRequired?: unknown } | undefined)?.passwordChangeRequired === true)
      throw new Error(`change your password in a browser first: ${new URL('/oauth/login', this.#url).href}`);
  }

  async #refresh(form: FormFields): Promise<CachedTokens> {
    const { audience } = this.#flags;
    const whole = { ...form, ...(audience === undefined ? {} : { audience }), ...this.#login.client };
    return await this.#save(await this.#server.post('/oauth/token', whole));
  }

  async #save(response: TokenServerResponse): Promise<CachedTokens> {
    const tokens = this.#tokensOf(response);
    await writeTokens(this.#file, tokens);
    return tokens;
  }

  #tokensOf(response: TokenServerResponse): CachedTokens {
    const tokens = tokensOf(response, Date.now());
    if (tokens === undefined) throw new Error(`unexpected response from ${this.#url}; is it the platform?`);
    return tokens;
  }

  /** Returns the command with which a user can log in before the next call. */
  get #command(): string {
    const { caFile, login, username, audience } = this.#flags;
    // When a user runs the command at a terminal, kubectl does not pass the CA of its cluster.
    const isClusters = caFile === undefined && this.#hasCA;
    const values = { server: this.#url, 'ca-file': isClusters ? 'FILE' : caFile, login, username, audience };
    const given = Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}=${value}`],
    );
    const hint = isClusters
      ? `, where FILE contains the CA of the kubeconfig's cluster: ${authorityOfCluster} >FILE`
      : '';
    return `platform-apiserver credential ${given.join(' ')}${hint}`;
  }

  get #login(): TerminalLogin {
    return logins[this.#flags.login];
  }
}
