/** Everything that is served for OAuth; the metadata follows from this list. */
import type { SigningKeys } from '../accounts/signing-keys.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Route } from '../http/route.ts';
import type { GrantParts } from './grants/grant.ts';
import { createGrants } from './grants/index.ts';
import { introspectionEndpoint } from './introspection.ts';
import { keysEndpoint } from './keys.ts';
import { metadataRoutes } from './metadata.ts';
import { revocationEndpoint } from './revocation.ts';
import { tokenEndpoint } from './token-endpoint.ts';
import { userinfoEndpoint } from './userinfo.ts';

export interface OAuthParts extends GrantParts {
  readonly tokens: Tokens;
  readonly keys: SigningKeys;
  readonly issuer: () => string;
}

export function oauthRoutes(parts: OAuthParts): readonly Route[] {
  const endpoints = [
    tokenEndpoint({ ...parts, grants: createGrants(parts) }),
    revocationEndpoint(parts),
    introspectionEndpoint(parts),
    userinfoEndpoint(parts.accessTokens),
    keysEndpoint(parts.keys),
  ];
  return [...endpoints.flatMap(({ routes }) => routes), ...metadataRoutes(endpoints, parts.issuer)];
}
