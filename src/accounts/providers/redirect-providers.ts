/** Identity providers at which users log in, and which redirect their browser back. */
import type { IdentityProvider } from '../../config/identity-providers.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { IdentityProviders } from './identity-providers.ts';
import { personOf, type Person } from './person.ts';
import type { ProviderRequest, RedirectProvider } from './provider.ts';

export class RedirectProviders {
  readonly #providers: IdentityProviders;

  constructor(providers: IdentityProviders) {
    this.#providers = providers;
  }

  all(): IdentityProvider[] {
    return this.#providers.ofKind('redirect');
  }

  /**
   * Returns the URL at which the user logs in. Throws 404 for an unknown provider, and 503 if the provider is
   * unavailable.
   */
  async authorizationURL(name: string, request: ProviderRequest, forceLogin: boolean, source: string): Promise<string> {
    return await this.#run(name, source, (provider) => provider.authorizationURL(request, forceLogin));
  }

  /** Returns the person to whom the query of the redirect belongs. Throws OAuthError, PersonRefused, and 503. */
  async person(name: string, query: URLSearchParams, request: ProviderRequest, source: string): Promise<Person> {
    const statement = await this.#run(name, source, async (provider, settings) => {
      const found = await provider.person(query, request);
      this.#providers.responded(settings);
      return found;
    });
    return personOf(name, statement);
  }

  async #run<T>(
    name: string,
    source: string,
    requests: (provider: RedirectProvider, settings: IdentityProvider) => Promise<T>,
  ): Promise<T> {
    const settings = this.all().find((one) => one.name === name);
    if (settings === undefined) throw new OAuthError('invalid_request', 'unknown identity provider', { status: 404 });
    const slot = await this.#providers.slotAt<'redirect'>(settings, source);
    try {
      return await slot.run((provider) => requests(provider, settings));
    } finally {
      slot.free();
    }
  }
}
