import { secretOf } from './identity-providers.ts';
import type { PlatformConfiguration } from './schema.ts';

/** The names of all Secrets that a configuration refers to. */
export function secretsIn({ authentication, audit }: PlatformConfiguration): ReadonlySet<string> {
  const { users, clients, identityProviders } = authentication;
  const refs = [
    ...users.map(({ passwordRef }) => passwordRef),
    ...clients.map(({ secretRef }) => secretRef),
    ...identityProviders.map(secretOf),
    audit.webhook?.tokenRef,
  ];
  return new Set(refs.flatMap((ref) => (ref === undefined ? [] : [ref.name])));
}
