/** The only file that uses openid-client: logins at OpenID providers (OpenID Connect Core section 3.1). */
import * as client from 'openid-client';
import type { OpenIDSettings, ProviderOf } from '../../config/identity-providers.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { fetchOverTLS } from './https-fetch.ts';
import type { Statement } from './person.ts';
import type { ProviderParts, ProviderRequest, RedirectProvider } from './provider.ts';

/** Milliseconds after which a provider is discovered again. If that fails the previous result is used. */
const discoveryLife = 3_600_000;
/** Seconds, for each request to a provider. */
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

  async authorizationURL({ state, nonce, verifier }: ProviderRequest, again: boolean): Promise<string> {
    const url = client.buildAuthorizationUrl(await this.#discover(), {
      redirect_uri: this.#parts.redirectURI,
      scope: this.#settings.oidc.scopes.join(' '),
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(again ? { prompt: 'login' } : {}),
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
      if (claims === undefined) throw new Error('there is no id_token');
      const more =
        configuration.serverMetadata().userinfo_endpoint === undefined
          ? {}
          : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return statementOf({ ...more, ...claims }, this.#settings.oidc);
    } catch (error) {
      throw this.#refusalOf(error) ?? error;
    }
  }

  /** Undefined if the provider failed. */
  #refusalOf(error: unknown): OAuthError | undefined {
    const { name, displayName = name } = this.#settings;
    if (error instanceof client.AuthorizationResponseError)
      return new OAuthError('access_denied', `${displayName} did not let you in: ${error.error}`, { status: 403 });
    const isMismatch =
      (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') ||
      (error instanceof client.ClientError && mismatches.has(String(error.code)));
    if (!isMismatch) return undefined;
    const message = `what ${displayName} says does not fit what it was asked; begin again`;
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
      if (before === undefined) throw new Error(`${name} cannot be discovered`, { cause: error });
      log.warn('identity provider cannot be discovered again', { provider: name, error });
      return before.configuration;
    } finally {
      this.#discovering = undefined;
    }
  }

  async #discoverNow(): Promise<client.Configuration> {
    const { secret, clockTolerance } = this.#parts;
    const { issuer, clientID, clientSecretRef, caCertificate } = this.#settings.oidc;
    if (secret === undefined)
      throw new Error(`there is no ${clientSecretRef.key} in the Secret ${clientSecretRef.name}`);
    return await client.discovery(
      new URL(issuer),
      clientID,
      { client_secret: secret, [client.clockTolerance]: Math.floor(clockTolerance / 1_000) },
      undefined,
      {
        [client.customFetch]: fetchOverTLS(caCertificate),
        timeout,
        // Without this the connection alone vouches for the id_token.
        execute: [client.enableNonRepudiationChecks],
      },
    );
  }
}

export const openID = {
  kind: 'redirect',
  create: (settings: ProviderOf<'OIDC'>, parts: ProviderParts): RedirectProvider => new OpenIDProvider(settings, parts),
} as const;

/** Codes of openid-client for a response that was tampered with, belongs to another request, or is too old. */
const mismatches: ReadonlySet<string> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
]);

type Claims = Readonly<Record<string, unknown>>;

/** In terms of the claims that are configured; whatever is no text is not there. */
export function statementOf(said: Claims, { claims }: Pick<OpenIDSettings, 'claims'>): Statement {
  const text = (name: string): string | undefined => {
    const value = said[name];
    return typeof value === 'string' ? value : undefined;
  };
  const groups = claims.groups === undefined ? [] : [said[claims.groups] ?? []].flat();
  return {
    subject: text('sub'),
    username: text(claims.username),
    // One that anybody may have made up is nobody's. Some say it in a text.
    email: said['email_verified'] === true || said['email_verified'] === 'true' ? text(claims.email) : undefined,
    displayName: text(claims.displayName),
    groups: groups.filter((group) => typeof group === 'string'),
  };
}
