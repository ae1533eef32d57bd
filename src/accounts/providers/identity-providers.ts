/** The configured identity providers, with limits on concurrent logins. */
import type { SecretRefs } from '../../cluster/secret-refs.ts';
import {
  secretOf,
  secretPathOf,
  type IdentityProvider,
  type ProviderTypeName,
} from '../../config/identity-providers.ts';
import type { LiveConfiguration } from '../../config/live.ts';
import { pathOf } from '../../config/parse.ts';
import { addressKeys } from '../../runtime/shares.ts';
import { OAuthError, serviceUnavailable } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slots } from '../../runtime/slots.ts';
import { rfc3339, type Clock } from '../../runtime/time.ts';
import {
  CredentialsRefused,
  type ProviderKind,
  type Providers,
  type ProviderType,
  type ProviderTypes,
} from './provider.ts';

/** Limits on concurrent logins per provider. */
const logins = {
  what: 'identity provider logins',
  total: 8,
  perUser: 4,
  queue: { total: 32, perUser: 8, timeout: 30_000 },
};

interface Created {
  readonly provider: Providers[ProviderKind];
  /** Settings and secret with which the provider was created, as JSON. */
  readonly key: string;
}

/** A slot for a login at a provider. */
export interface ProviderSlot<Kind extends ProviderKind> {
  /** Sends requests. Throws OAuthError for a login that the provider refused, and 503 for any other failure. */
  run<T>(requests: (provider: Providers[Kind]) => Promise<T>): Promise<T>;
  free(): void;
}

interface IdentityProvidersOptions {
  readonly config: LiveConfiguration;
  readonly secrets: Pick<SecretRefs, 'read'>;
  readonly log: Logger;
  readonly clock: Pick<Clock, 'now'>;
  readonly types: ProviderTypes;
}

export class IdentityProviders {
  readonly #options: IdentityProvidersOptions;
  readonly #created = new Map<string, Created>();
  readonly #slots = new Map<string, Slots>();
  /** Time and cause of the last failure, by name of the provider. */
  readonly #failures = new Map<string, string>();

  constructor(options: IdentityProvidersOptions) {
    this.#options = options;
  }

  /** Returns the providers of a kind in the order of the configuration. */
  ofKind(kind: ProviderKind): IdentityProvider[] {
    const { config, types } = this.#options;
    return config.value.authentication.identityProviders.filter(({ type }) => types[type].kind === kind);
  }

  /** Waits for a slot. Throws 429 if too many logins wait for the provider. `source` is the address of the caller. */
  async slotAt<Kind extends ProviderKind>(settings: IdentityProvider, source: string): Promise<ProviderSlot<Kind>> {
    const { name, displayName = name } = settings;
    const slots = this.#slots.get(name) ?? new Slots(logins);
    this.#slots.set(name, slots);
    const provider = this.#provider(settings) as Providers[Kind];
    const free = await slots.wait(addressKeys(source));
    const run: ProviderSlot<Kind>['run'] = async (requests) => {
      try {
        return await requests(provider);
      } catch (error) {
        if (error instanceof OAuthError && error.error === 'access_denied') throw error;
        if (error instanceof CredentialsRefused) this.warn(settings, error);
        this.#options.log.warn('identity provider failed', { provider: name, error });
        if (error instanceof OAuthError) throw error;
        this.#failures.set(name, `at ${rfc3339(this.#options.clock.now())} (${causeOf(error)})`);
        throw serviceUnavailable(
          `the identity provider "${displayName}" is unavailable; try again in a moment, or contact your administrator`,
        );
      }
    };
    return { run, free };
  }

  /** Ends the report of a failure, after the provider has responded to a request. */
  responded({ name }: IdentityProvider): void {
    this.#failures.delete(name);
  }

  /**
   * Reports each provider whose last request failed. Names only the code of the error, because every authenticated user
   * may read the report.
   */
  warning(): string {
    return this.#options.config.value.authentication.identityProviders
      .flatMap(({ name }) => {
        const failure = this.#failures.get(name);
        return failure === undefined ? [] : [`"${name}" failed ${failure}`];
      })
      .join('; ');
  }

  #provider(settings: IdentityProvider): Providers[ProviderKind] {
    const { config, secrets, types, clock, log } = this.#options;
    const { name, type } = settings;
    const { issuer, maximumClockSkew: clockTolerance } = config.value.authentication;
    const ref = secretOf(settings);
    const values = {
      secret: ref && secrets.read(ref),
      redirectURI: `${issuer}/oauth/callback/${name}`,
      clockTolerance,
    };
    const key = JSON.stringify([settings, values]);
    const before = this.#created.get(name);
    if (before?.key === key) return before.provider;
    const providerType: ProviderType<ProviderTypeName> = types[type];
    const provider = providerType.create(settings, { ...values, clock, log });
    this.#created.set(name, { provider, key });
    // The failure may concern the former settings.
    this.#failures.delete(name);
    return provider;
  }

  /** Reports rejected credentials as a problem of the configuration, or clears the report if `refused` is undefined. */
  warn(settings: IdentityProvider, refused: CredentialsRefused | undefined): void {
    const { config } = this.#options;
    const { authentication } = config.value;
    const index = authentication.identityProviders.indexOf(settings);
    // The configuration has changed in the meantime and no longer contains these settings.
    if (index < 0) return;
    const path = pathOf(['authentication', 'identityProviders', index, ...secretPathOf(settings)], { authentication });
    const problems = refused === undefined ? [] : [{ path, message: refused.message }];
    config.warn(`identity provider ${settings.name}`, problems);
  }
}

/** Returns the code or the class of the first cause that has one. */
function causeOf(error: unknown): string {
  for (let one = error, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth += 1) {
    const { code } = one as { readonly code?: unknown };
    if (typeof code === 'string') return code;
    if (one.name !== 'Error') return typeof code === 'number' ? `${one.name} ${code}` : one.name;
  }
  return 'see the log';
}
