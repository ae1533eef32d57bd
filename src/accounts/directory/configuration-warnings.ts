/** Finds problems in a valid configuration: missing values of Secrets, and e-mail addresses that users share. */
import { parametersOf } from '../../config/hash-parameters.ts';
import { secretOf, secretPathOf } from '../../config/identity-providers.ts';
import { credentialsOf } from '../../config/log-stores.ts';
import { pathOf, type Problem } from '../../config/parse.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';
import type { SecretKeyRef, SecretRefs } from '../../cluster/secret-refs.ts';

type Configuration = Pick<PlatformConfiguration, 'authentication' | 'audit' | 'logging' | 'tracing'>;

interface Reference {
  readonly path: readonly PropertyKey[];
  readonly ref: SecretKeyRef;
  readonly isHash: boolean;
}

const at = (path: readonly PropertyKey[], ref: SecretKeyRef | undefined, isHash = false): Reference[] =>
  ref === undefined ? [] : [{ path, ref, isHash }];

function referencesIn({ authentication, audit, logging, tracing }: Configuration): Reference[] {
  const { users, clients, identityProviders } = authentication;
  return [
    ...clients.flatMap(({ secretRef }, index) => at(['authentication', 'clients', index, 'secretRef'], secretRef)),
    ...users.flatMap(({ passwordRef }, index) =>
      at(['authentication', 'users', index, 'passwordRef'], passwordRef, true),
    ),
    ...identityProviders.flatMap((one, index) =>
      at(['authentication', 'identityProviders', index, ...secretPathOf(one)], secretOf(one)),
    ),
    ...at(['audit', 'webhook', 'tokenRef'], audit.webhook?.tokenRef),
    ...credentialsOf(logging).flatMap(({ path, ref }) => at(['logging', ...path], ref)),
    ...at(['tracing', 'tokenRef'], tracing.tokenRef),
  ];
}

/** Returns the names of all Secrets that a configuration refers to. */
export const secretsIn = (configuration: Configuration): ReadonlySet<string> =>
  new Set(referencesIn(configuration).map(({ ref }) => ref.name));

/** Returns the warnings about a valid configuration. Their messages never contain a value of a Secret. */
export function warningsOf(configuration: Configuration, secrets: Pick<SecretRefs, 'read' | 'problemOf'>): Problem[] {
  const problemOf = ({ ref, isHash }: Reference): string | undefined => {
    const problem = secrets.problemOf(ref);
    if (problem !== undefined || !isHash || parametersOf(secrets.read(ref) ?? '') !== undefined) return problem;
    return `the key "${ref.key}" of the Secret "${ref.name}" is not a supported password hash; create one with "platform-apiserver hash-password"`;
  };
  const { users } = configuration.authentication;
  const byEmail = Map.groupBy(users, ({ email, username }) => email?.toLowerCase() ?? username);
  return [
    ...referencesIn(configuration).map((one) => ({ path: one.path, message: problemOf(one) })),
    ...users.map(({ email, username }, index) => {
      const others = (byEmail.get(email?.toLowerCase() ?? '') ?? []).filter((one) => one.username !== username);
      const names = others.map((one) => one.username).join(', ');
      const message = names === '' ? undefined : `also belongs to ${names}, so nobody can log in with this address`;
      return { path: ['authentication', 'users', index, 'email'], message };
    }),
  ].flatMap(({ path, message }) => (message === undefined ? [] : [{ path: pathOf(path, configuration), message }]));
}
