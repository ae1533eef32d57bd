/** The contract of identity providers. `index.ts` lists their types. */
import type { ProviderOf, ProviderTypeName } from '../../config/identity-providers.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Clock } from '../../runtime/time.ts';
import type { Statement } from './person.ts';

/** A name that was looked up at one provider. Holds a connection until `close`. */
export interface LookUp {
  /** Undefined if the provider does not know the name. */
  readonly subject: string | undefined;
  /** Undefined for a wrong password. Takes the same requests if the provider does not know the name. */
  authenticate(password: string): Promise<Statement | undefined>;
  /** May be called more than once. */
  close(): void;
}

/** A provider that checks passwords. */
export interface PasswordProvider {
  lookUp(login: string): Promise<LookUp>;
}

/** Binds the response of a provider to one request; only the browser that made the request knows all of it. */
export interface ProviderRequest {
  readonly state: string;
  readonly nonce: string;
  /** RFC 7636. */
  readonly verifier: string;
}

/** A provider that users log in at, and that sends their browser back. */
export interface RedirectProvider {
  /** Returns where the browser goes to log in. `again`: also a user who is logged in there. */
  authorizationURL(request: ProviderRequest, again: boolean): Promise<string>;
  /** Validates the query that the browser comes back with. Throws OAuthError for a response that does not match the request. */
  person(query: URLSearchParams, request: ProviderRequest): Promise<Statement>;
}

export interface Providers {
  readonly password: PasswordProvider;
  readonly redirect: RedirectProvider;
}

export type ProviderKind = keyof Providers;

/** What a provider gets beside its settings. It is created again when one of the values changes. */
export interface ProviderParts {
  /** The value that `secretOf` refers to. Undefined while it is missing. */
  readonly secret: string | undefined;
  /** Differs between providers, so none gets the response of another (RFC 9700 section 4.4). */
  readonly redirectURI: string;
  /** Milliseconds. */
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

/** The provider rejects the credentials of this server: nobody can log in until the configuration or its Secret is changed. */
export class CredentialsRefused extends Error {
  override readonly name = 'CredentialsRefused';
}
