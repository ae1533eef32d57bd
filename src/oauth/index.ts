/** Everything that is served for OAuth; the metadata follows from this list. */
import type { OpenIDProviders } from '../accounts/identity-providers/openid.ts';
import type { RefreshTokens } from '../accounts/refresh-tokens.ts';
import type { SigningKeys } from '../accounts/signing-keys.ts';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Route } from '../http/route.ts';
import { accountRoutes } from './account-endpoint.ts';
import { authorizationEndpoint } from './authorization-endpoint.ts';
import { deviceAuthorizationEndpoint } from './device-authorization.ts';
import { deviceRoutes } from './device-endpoint.ts';
import type { GrantParts } from './grants/grant.ts';
import { createGrants } from './grants/index.ts';
import { introspectionEndpoint } from './introspection.ts';
import { keysEndpoint } from './keys.ts';
import { loginRoutes } from './login-endpoint.ts';
import { logoutEndpoint } from './logout.ts';
import { metadataRoutes } from './metadata.ts';
import { loginPages } from './pages/login.ts';
import { PasswordLogin, type PasswordLoginParts } from './password-login.ts';
import { providerLoginRoutes } from './provider-login.ts';
import { revocationEndpoint } from './revocation.ts';
import { tokenEndpoint } from './token-endpoint.ts';
import { tokenReviewEndpoint } from './token-review.ts';
import { userinfoEndpoint } from './userinfo.ts';

export interface OAuthParts extends Omit<GrantParts, 'login' | 'clock'>, PasswordLoginParts {
  readonly tokens: Tokens;
  readonly keys: SigningKeys;
  /** Who calls, by a bearer token. */
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly audiences: () => Promise<readonly string[]>;
  readonly openIDProviders: OpenIDProviders;
  readonly refreshTokens: Pick<RefreshTokens, 'derive'>;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

export function oauthRoutes(given: OAuthParts): readonly Route[] {
  const parts = {
    clock: Date.now,
    ...given,
    login: new PasswordLogin(given),
    showLogin: loginPages(() => given.openIDProviders.all()),
  };
  const endpoints = [
    authorizationEndpoint(parts),
    tokenEndpoint({ ...parts, grants: createGrants(parts) }),
    deviceAuthorizationEndpoint(parts),
    logoutEndpoint(parts),
    revocationEndpoint(parts),
    introspectionEndpoint(parts),
    tokenReviewEndpoint(parts),
    userinfoEndpoint(parts.accessTokens),
    keysEndpoint(parts.keys),
  ];
  return [
    ...endpoints.flatMap(({ routes }) => routes),
    ...loginRoutes(parts),
    ...providerLoginRoutes(parts),
    ...deviceRoutes(parts),
    ...accountRoutes(parts),
    ...metadataRoutes(endpoints, parts.issuer),
  ];
}
