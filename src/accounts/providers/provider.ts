/** Interfaces of identity providers. `index.ts` lists their types. */
import type { ProviderOf, ProviderTypeName } from '../../config/identity-providers.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Clock } from '../../runtime/time.ts';
import type { Statement } from './person.ts';

/** Result of looking up a name at a provider. Holds a connection until `close`. */
export interface LookUp {
  /** Subject of the entry; undefined if the provider does not have the name. */
  readonly subject: string | undefined;
  /** Returns undefined for a wrong password. Sends the same requests if the provider does not have the name. */
  authenticate(password: string): Promise<Statement | undefined>;
  /** Closes the connection. Can be called more than once. */
  close(): void;
}

/** A provider that checks passwords. */
export interface PasswordProvider {
  lookUp(login: string): Promise<LookUp>;
}

/**
 * Values that bind the response of a provider to one request. Only the browser that made the request knows all these
 * values.
 */
export interface ProviderRequest {
  readonly state: string;
  readonly nonce: string;
  /** PKCE code verifier (RFC 7636). */
  readonly verifier: string;
}

/** A provider at which users log in, and which redirects their browser back. */
export interface RedirectProvider {
  /**
   * Returns the URL at which the user logs in. `forceLogin` requires a login even if the user has a session at the
   * provider.
   */
  authorizationURL(request: ProviderRequest, forceLogin: boolean): Promise<string>;
  /** Validates the query of the redirect back. Throws OAuthError if the response does not match the request. */
  person(query: URLSearchParams, request: ProviderRequest): Promise<Statement>;
}

export interface Providers {
  readonly password: PasswordProvider;
  readonly redirect: RedirectProvider;
}

export type ProviderKind = keyof Providers;

/**
 * Values that a provider gets in addition to its settings. The provider is created again when one of the values
 * changes.
 */
export interface ProviderParts {
  /** Value to which `secretOf` refers; undefined while the value is missing. */
  readonly secret: string | undefined;
  /**
   * Unique per provider, so that the response of one provider is never processed as the response of another (RFC 9700
   * section 4.4).
   */
  readonly redirectURI: string;
  /** Maximum difference between the clocks of this server and the provider, in milliseconds. */
  readonly clockTolerance: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
}

interface TypeOfKind<Kind extends ProviderKind, Settings> {
  readonly kind: Kind;
  create(settings: Settings, parts: ProviderParts): Providers[Kind];
}

export type ProviderType<Name extends ProviderTypeName> =
  TypeOfKind<'password', ProviderOf<Name>> | TypeOfKind<'redirect', ProviderOf<Name>>;

export type ProviderTypes = { readonly [Name in ProviderTypeName]: ProviderType<Name> };

/**
 * Error for a provider that rejects the credentials of this server. Nobody can log in at the provider until the
 * configuration or its Secret is fixed.
 */
export class CredentialsRefused extends Error {
  override readonly name = 'CredentialsRefused';
}
