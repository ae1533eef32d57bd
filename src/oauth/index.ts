/** All OAuth routes. The metadata is derived from the endpoints. */
import type { RedirectProviders } from '../accounts/providers/redirect-providers.ts';
import type { RefreshTokens } from '../tokens/refresh-tokens.ts';
import type { SigningKeys } from '../tokens/signing-keys.ts';
import type { Authenticator } from '../auth/authenticators/index.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import type { Tokens } from '../tokens/jwt.ts';
import type { LiveConfiguration } from '../config/live.ts';
import type { Route } from '../http/route.ts';
import type { Clock } from '../runtime/time.ts';
import { accountRoutes } from './endpoints/account.ts';
import { authorizationEndpoint } from './endpoints/authorization.ts';
import { deviceAuthorizationEndpoint } from './endpoints/device-authorization.ts';
import { deviceRoutes } from './endpoints/device.ts';
import type { GrantParts } from './grants/grant.ts';
import { createGrants } from './grants/index.ts';
import { introspectionEndpoint } from './endpoints/introspection.ts';
import { keysEndpoint } from './endpoints/keys.ts';
import { loginRoutes } from './endpoints/login.ts';
import { logoutEndpoint } from './endpoints/logout.ts';
import { metadataRoutes } from './endpoints/metadata.ts';
import { loginPages } from './pages/login.ts';
import { PasswordLogin, type PasswordLoginParts } from './password-login.ts';
import { providerLoginRoutes } from './endpoints/provider-login.ts';
import { revocationEndpoint } from './endpoints/revocation.ts';
import { tokenEndpoint } from './endpoints/token.ts';
import { tokenReviewEndpoint } from './endpoints/token-review-webhook.ts';
import { userinfoEndpoint } from './endpoints/userinfo.ts';

export interface OAuthParts extends Omit<GrantParts, 'login' | 'clock'>, Omit<PasswordLoginParts, 'multipleLogin'> {
  readonly live: Pick<LiveConfiguration, 'value'>;
  readonly client: { audiences(): Promise<readonly string[]> };
  readonly clock: Clock;
  readonly tokens: Tokens;
  readonly keys: SigningKeys;
  /** Authenticates callers by a bearer token. */
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly redirectProviders: RedirectProviders;
  readonly refreshTokens: Pick<RefreshTokens, 'derive'>;
}

export function oauthRoutes(given: OAuthParts): readonly Route[] {
  const { client, live } = given;
  const own = {
    ...given,
    clock: () => given.clock.now(),
    audiences: () => client.audiences(),
    multipleLogin: () => live.value.authentication.multipleLogin,
  };
  const parts = {
    ...own,
    login: new PasswordLogin(own),
    showLogin: loginPages(() => given.redirectProviders.all()),
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
