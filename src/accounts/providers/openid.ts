/** Logins at OpenID providers (OpenID Connect Core section 3.1). No other file uses openid-client. */
import * as client from 'openid-client';
import type { OpenIDSettings, ProviderOf } from '../../config/identity-providers.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { fetchOverTLS } from './https-fetch.ts';
import type { Statement } from './person.ts';
import type { ProviderParts, ProviderRequest, RedirectProvider } from './provider.ts';

/** Milliseconds after which a provider is discovered again. If that fails, the previous result stays in use. */
const discoveryLife = 3_600_000;
/** Timeout of each request to a provider, in seconds. */
const timeout = 10;

class OpenIDProvider implements RedirectProvider {
  readonly #settings: ProviderOf<'OIDC'>;
  readonly #parts: ProviderParts;
  #discovered: { readonly configuration: client.Configuration; readonly at: number } | undefined;
  #discovering: Promise<client.Configuration> | undefined;

  constructor(settings: ProviderOf<'OIDC'>, parts: ProviderParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  async authorizationURL({ state, nonce, verifier }: ProviderRequest, forceLogin: boolean): Promise<string> {
    const url = client.buildAuthorizationUrl(await this.#discover(), {
      redirect_uri: this.#parts.redirectURI,
      scope: this.#settings.oidc.scopes.join(' '),
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(forceLogin ? { prompt: 'login' } : {}),
    });
    return url.href;
  }

  /** Verifies state, iss (RFC 9207), and issuer, audience, nonce, times and signature of the id_token. */
  async person(query: URLSearchParams, { state, nonce, verifier }: ProviderRequest): Promise<Statement> {
    const configuration = await this.#discover();
    const url = new URL(this.#parts.redirectURI);
    url.search = query.toString();
    try {
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the token response has no id_token');
      const more =
        configuration.serverMetadata().userinfo_endpoint === undefined
          ? {}
          : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return statementOf({ ...more, ...claims }, this.#settings.oidc);
    } catch (error) {
      throw this.#refusalOf(error) ?? error;
    }
  }

  /** Returns the OAuth error for a refused login. Returns undefined if the provider failed. */
  #refusalOf(error: unknown): OAuthError | undefined {
    const { name, displayName = name } = this.#settings;
    if (error instanceof client.AuthorizationResponseError)
      return new OAuthError('access_denied', `${displayName} refused the login: ${error.error}`, { status: 403 });
    const isMismatch =
      (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') ||
      (error instanceof client.ClientError && mismatches.has(String(error.code)));
    if (!isMismatch) return undefined;
    const message = `the response of ${displayName} does not match this login; log in again`;
    return new OAuthError('invalid_request', message, { cause: error });
  }

  async #discover(): Promise<client.Configuration> {
    const { clock, log } = this.#parts;
    const before = this.#discovered;
    if (before !== undefined && clock.now() - before.at < discoveryLife) return before.configuration;
    try {
      this.#discovering ??= this.#discoverNow();
      const configuration = await this.#discovering;
      this.#discovered = { configuration, at: clock.now() };
      return configuration;
    } catch (error) {
      const { name } = this.#settings;
      if (before === undefined) throw new Error(`discovery of identity provider "${name}" failed`, { cause: error });
      log.warn('identity provider rediscovery failed', { provider: name, error });
      return before.configuration;
    } finally {
      this.#discovering = undefined;
    }
  }

  async #discoverNow(): Promise<client.Configuration> {
    const { secret, clockTolerance } = this.#parts;
    const { issuer, clientID, clientSecretRef, caCertificate } = this.#settings.oidc;
    if (secret === undefined)
      throw new Error(`the key "${clientSecretRef.key}" of the Secret "${clientSecretRef.name}" is missing`);
    return await client.discovery(
      new URL(issuer),
      clientID,
      { client_secret: secret, [client.clockTolerance]: Math.floor(clockTolerance / 1_000) },
      undefined,
      {
        [client.customFetch]: fetchOverTLS(caCertificate),
        timeout,
        // Verifies the signature of the id_token, instead of relying on TLS alone.
        execute: [client.enableNonRepudiationChecks],
      },
    );
  }
}

export const openID = {
  kind: 'redirect',
  create: (settings: ProviderOf<'OIDC'>, parts: ProviderParts): RedirectProvider => new OpenIDProvider(settings, parts),
} as const;

/** Error codes of openid-client for a response that was tampered with, belongs to another request, or is too old. */
const mismatches: ReadonlySet<string> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
]);

type Claims = Readonly<Record<string, unknown>>;

/** Returns the configured claims. Claims that are not strings are ignored. */
export function statementOf(values: Claims, { claims }: Pick<OpenIDSettings, 'claims'>): Statement {
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  const groups = claims.groups === undefined ? [] : [values[claims.groups] ?? []].flat();
  return {
    subject: text('sub'),
    username: text(claims.username),
    // An unverified address may belong to anybody. Some providers send the flag as a string.
    email: values['email_verified'] === true || values['email_verified'] === 'true' ? text(claims.email) : undefined,
    displayName: text(claims.displayName),
    groups: groups.filter((group) => typeof group === 'string'),
  };
}
