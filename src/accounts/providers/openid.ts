/** The one door to openid-client: people of OpenID providers (OpenID Connect Core section 3.1), which send them back with a code. */
import * as client from 'openid-client';
import type { IdentityProvider, OpenIDSettings } from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { OAuthError, serviceUnavailable } from '../../runtime/errors.ts';
import { systemClock, type Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slots } from '../../runtime/slots.ts';
import { addressKeys } from '../../runtime/client-address.ts';
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import { fetchOverTLS } from './https-fetch.ts';
import { personOf, type Person, type Statement } from './person.ts';

type OpenIDProvider = Extract<IdentityProvider, { readonly type: 'OIDC' }>;

/** What makes an answer one to just this question; nobody but the browser that asked knows all of it. */
export interface ProviderRequest {
  readonly state: string;
  readonly nonce: string;
  /** RFC 7636. */
  readonly verifier: string;
}

interface Discovered {
  readonly configuration: client.Configuration;
  /** Of the settings that it was made with. */
  readonly key: string;
  readonly at: number;
}

/** What a provider says of itself is asked for again when it is so old; until there is a new word the old one counts. */
const discoveryLife = 3_600_000;
/** Seconds, for each request to a provider. */
const longestAnswer = 10;
/** Requests to one provider. */
const requests = {
  what: 'logins by an identity provider',
  total: 8,
  queue: { total: 32, perUser: 8, timeout: 30_000 },
};

export class OpenIDProviders {
  readonly #config: LiveConfiguration;
  readonly #secrets: Pick<SecretRefs, 'read'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: Logger;
  readonly #discovered = new Map<string, Discovered>();
  readonly #underWay = new Map<string, Promise<client.Configuration>>();
  readonly #slots = new Map<string, Slots>();

  constructor(options: {
    config: LiveConfiguration;
    secrets: Pick<SecretRefs, 'read'>;
    clock?: Pick<Clock, 'now'>;
    log: Logger;
  }) {
    this.#config = options.config;
    this.#secrets = options.secrets;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log;
  }

  all(): OpenIDProvider[] {
    return this.#config.value.authentication.identityProviders.filter((one) => one.type === 'OIDC');
  }

  /** Where the browser goes, to log in there. `again`: also who is logged in there. Throws 404, and 503 while it cannot be told. */
  async authorizationURL(name: string, asked: ProviderRequest, again: boolean, source: string): Promise<string> {
    const provider = this.#provider(name);
    const challenge = await client.calculatePKCECodeChallenge(asked.verifier);
    return await this.#ask(provider, source, async () => {
      const url = client.buildAuthorizationUrl(await this.#discover(provider), {
        redirect_uri: this.#redirectURI(provider),
        scope: provider.oidc.scopes.join(' '),
        state: asked.state,
        nonce: asked.nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...(again ? { prompt: 'login' } : {}),
      });
      return url.href;
    });
  }

  /**
   * Who has come back with this query: state, iss (RFC 9207), and of the id_token issuer, audience, nonce, times and signature are
   * verified. Throws OAuthError for an answer that is not one to what was asked, PersonRefused, and 503.
   */
  async person(name: string, query: URLSearchParams, asked: ProviderRequest, source: string): Promise<Person> {
    const provider = this.#provider(name);
    const said = await this.#ask(provider, source, async () => {
      const configuration = await this.#discover(provider);
      const url = new URL(this.#redirectURI(provider));
      url.search = query.toString();
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        expectedState: asked.state,
        expectedNonce: asked.nonce,
        pkceCodeVerifier: asked.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('there is no id_token');
      const more =
        configuration.serverMetadata().userinfo_endpoint === undefined
          ? {}
          : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return statementOf({ ...more, ...claims }, provider.oidc);
    });
    return personOf(name, said);
  }

  #provider(name: string): OpenIDProvider {
    const provider = this.all().find((one) => one.name === name);
    if (provider === undefined)
      throw new OAuthError('invalid_request', 'there is no such identity provider', { status: 404 });
    return provider;
  }

  /** One for each provider, so that no provider gets the answer of another (RFC 9700 section 4.4). */
  #redirectURI({ name }: OpenIDProvider): string {
    return `${this.#config.value.authentication.issuer}/oauth/callback/${name}`;
  }

  async #ask<T>({ name, displayName = name }: OpenIDProvider, source: string, task: () => Promise<T>): Promise<T> {
    const slots = this.#slots.get(name) ?? new Slots(requests);
    this.#slots.set(name, slots);
    const free = await slots.wait(addressKeys(source));
    try {
      return await task();
    } catch (error) {
      if (error instanceof client.AuthorizationResponseError)
        throw new OAuthError('access_denied', `${displayName} did not let you in: ${error.error}`, { status: 403 });
      const { code } = error as { code?: unknown };
      const isNoAnswer =
        (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') ||
        (error instanceof client.ClientError && answerIsWrong.has(String(code)));
      this.#log.warn('an identity provider could not be asked, or its answer was not taken', { provider: name, error });
      if (isNoAnswer)
        throw new OAuthError('invalid_request', `what ${displayName} says does not fit what it was asked; begin again`);
      throw serviceUnavailable(`${displayName} cannot be asked now; try again in a moment, or tell your administrator`);
    } finally {
      free();
    }
  }

  async #discover(provider: OpenIDProvider): Promise<client.Configuration> {
    const { name, oidc } = provider;
    const secret = this.#secrets.read(oidc.clientSecretRef);
    if (secret === undefined)
      throw new Error(`there is no ${oidc.clientSecretRef.key} in the Secret ${oidc.clientSecretRef.name}`);
    const key = JSON.stringify([oidc, secret]);
    const before = this.#discovered.get(name);
    const known = before?.key === key ? before : undefined;
    if (known !== undefined && this.#clock.now() - known.at < discoveryLife) return known.configuration;
    const under = this.#underWay.get(key) ?? this.#discoverNow(oidc, secret);
    this.#underWay.set(key, under);
    try {
      const configuration = await under;
      this.#discovered.set(name, { configuration, key, at: this.#clock.now() });
      return configuration;
    } catch (error) {
      // Whoever logs in cannot change what a provider says of itself.
      if (known === undefined) throw new Error(`${name} cannot be discovered`, { cause: error });
      this.#log.warn('an identity provider does not say any more what it is', { provider: name, error });
      return known.configuration;
    } finally {
      this.#underWay.delete(key);
    }
  }

  #discoverNow({ issuer, clientID, caCertificate }: OpenIDSettings, secret: string): Promise<client.Configuration> {
    const tolerance = Math.floor(this.#config.value.authentication.maximumClockSkew / 1_000);
    return client.discovery(
      new URL(issuer),
      clientID,
      { client_secret: secret, [client.clockTolerance]: tolerance },
      undefined,
      {
        [client.customFetch]: fetchOverTLS(caCertificate),
        timeout: longestAnswer,
        // The id_token is believed by its signature, not by the connection alone.
        execute: [client.enableNonRepudiationChecks],
      },
    );
  }
}

/** Codes of openid-client for an answer that was tampered with, is of somebody else, or is too old. */
const answerIsWrong: ReadonlySet<string> = new Set([
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
