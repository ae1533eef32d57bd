import { secretOf } from './identity-providers.ts';
import { credentialsOf } from './log-stores.ts';
import type { PlatformConfiguration } from './schema.ts';

/** The names of all Secrets that a configuration refers to. */
export function secretsIn({ authentication, audit, logging }: PlatformConfiguration): ReadonlySet<string> {
  const { users, clients, identityProviders } = authentication;
  const refs = [
    ...users.map(({ passwordRef }) => passwordRef),
    ...clients.map(({ secretRef }) => secretRef),
    ...identityProviders.map(secretOf),
    audit.webhook?.tokenRef,
    ...credentialsOf(logging).map(({ ref }) => ref),
  ];
  return new Set(refs.flatMap((ref) => (ref === undefined ? [] : [ref.name])));
}
