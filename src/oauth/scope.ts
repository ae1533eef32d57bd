import { clientScopes } from '../config/schema.ts';
import { described, text } from '../http/schema.ts';
import { OAuthError } from '../runtime/errors.ts';
import type { Subject } from '../tokens/subject.ts';
import type { Client } from '../accounts/directory/clients.ts';
import { kubernetesAudience } from '../config/names.ts';

/** Parameter of the authorization request and the token request (RFC 8707). */
export const resourceParameter = described(
  'Resource server that the access token is for: the issuer, or one that the configuration lists for the client',
  text.optional(),
);

/**
 * Returns the audience of a token: kube-apiserver by `audience` (RFC 8693 section 2.1), a resource server of the client
 * by `resource` (RFC 8707 section 2), or this server if the request names no audience. Throws invalid_target for any
 * other audience.
 */
export function audienceOf(
  requested: { readonly audience?: string | undefined; readonly resource?: string | undefined },
  { resources }: Pick<Client, 'resources'>,
  issuer: string,
): string {
  const { resource = issuer } = requested;
  const { audience = resource } = requested;
  if (resource !== issuer && !resources.includes(resource))
    throw new OAuthError('invalid_target', `resource must be one of ${[issuer, ...resources].join(', ')}`);
  if (audience !== resource && (audience !== kubernetesAudience || requested.resource !== undefined))
    throw new OAuthError(
      'invalid_target',
      `audience must be ${issuer} or ${kubernetesAudience}, and equal to resource`,
    );
  return audience;
}

/**
 * Throws invalid_target for audiences other than this server while the user must change the password, because only this
 * server enforces the change.
 */
export function assertAudience({ passwordChangeRequired }: Subject, audience: string, issuer: string): void {
  if (passwordChangeRequired === true && audience !== issuer)
    throw new OAuthError(
      'invalid_target',
      `the password must be changed first; until then the only audience is ${issuer}`,
    );
}

export const scopeParameter = described(
  'Scopes separated by spaces, such as `openid` for an `id_token`',
  text.optional(),
);
export const programScopeParameter = described(
  'Scopes separated by spaces, without `openid` and `offline_access`',
  text.optional(),
);

/** RFC 6749 appendix A.4. */
const shape = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/**
 * Returns the granted part of a requested scope (RFC 6749 section 3.3); undefined if none was requested. Throws
 * invalid_scope if the scope is malformed or no part of it is granted. A scope cannot be empty, and a response without
 * a scope would mean that the whole requested scope is granted (section 5.1).
 */
export function grantScope(
  requested: string | undefined,
  allowed: readonly string[] = clientScopes,
): string | undefined {
  if (requested === undefined) return undefined;
  if (requested.length > 1_000 || !shape.test(requested))
    throw new OAuthError('invalid_scope', 'scope must be a list of scopes separated by single spaces');
  const granted = [...new Set(requested.split(' '))].filter((one) => allowed.includes(one));
  if (granted.length === 0)
    throw new OAuthError(
      'invalid_scope',
      `none of the requested scopes is allowed; allowed scopes: ${allowed.join(' ') || 'none'}`,
    );
  return granted.join(' ');
}

/** Returns the granted scope of clients and ServiceAccounts, which get no id_token and no refresh token. */
export const programScope = (requested: string | undefined, allowed: readonly string[]): string | undefined =>
  grantScope(
    requested,
    allowed.filter((one) => one !== 'openid' && one !== 'offline_access'),
  );

/**
 * Returns the scope of a refresh: the granted scope or a part of it (RFC 6749 section 6). Throws invalid_scope for a
 * wider scope.
 */
export function narrowScope(requested: string | undefined, granted: string | undefined): string | undefined {
  if (requested === undefined) return granted;
  const allowed = new Set(granted?.split(' '));
  const narrowed = grantScope(requested);
  if (narrowed?.split(' ').some((one) => !allowed.has(one)))
    throw new OAuthError('invalid_scope', 'the scope exceeds the granted scope');
  return narrowed;
}
