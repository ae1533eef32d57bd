/** What is wrong with a configuration that is valid: what it refers to and is not there, and what two of its users both have. */
import { parametersOf } from '../../config/hash-parameters.ts';
import { secretPathOf, secretOf } from '../../config/identity-providers.ts';
import { credentialsOf } from '../../config/log-stores.ts';
import { pathOf, type Problem } from '../../config/parse.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';
import type { SecretKeyRef, SecretRefs } from '../../cluster/secret-refs.ts';

/** Never a value of a Secret. */
export function warningsOf(
  { authentication, audit, logging }: Pick<PlatformConfiguration, 'authentication' | 'audit' | 'logging'>,
  secrets: Pick<SecretRefs, 'read' | 'problemOf'>,
): Problem[] {
  const { users, clients, identityProviders } = authentication;
  const at = (...path: PropertyKey[]): string => pathOf(['authentication', ...path], { authentication });
  const reference = (path: string, ref: SecretKeyRef | undefined, isHash = false): Problem[] => {
    if (ref === undefined) return [];
    const problem = secrets.problemOf(ref);
    if (problem !== undefined) return [{ path, message: problem }];
    if (!isHash || parametersOf(secrets.read(ref) ?? '') !== undefined) return [];
    const message = `the key "${ref.key}" of the Secret "${ref.name}" holds no hash that is verified here; "platform-apiserver hash-password" makes one`;
    return [{ path, message }];
  };
  const byEmail = Map.groupBy(users, ({ email, username }) => email?.toLowerCase() ?? username);
  return [
    ...clients.flatMap(({ secretRef }, index) => reference(at('clients', index, 'secretRef'), secretRef)),
    ...users.flatMap(({ passwordRef, email, username }, index) => {
      const others = (byEmail.get(email?.toLowerCase() ?? '') ?? []).filter((one) => one.username !== username);
      const names = others.map((one) => one.username).join(', ');
      const message = `is that of ${names} too: nobody can log in by it`;
      return [
        ...reference(at('users', index, 'passwordRef'), passwordRef, true),
        ...(others.length === 0 ? [] : [{ path: at('users', index, 'email'), message }]),
      ];
    }),
    ...identityProviders.flatMap((one, index) =>
      reference(at('identityProviders', index, ...secretPathOf(one)), secretOf(one)),
    ),
    ...reference('audit.webhook.tokenRef', audit.webhook?.tokenRef),
    ...credentialsOf(logging).flatMap(({ path, ref }) => reference(['logging', ...path].join('.'), ref)),
  ];
}
