/** Builds the authentication and authorization of requests. */
import type { AccountParts } from '../accounts/build.ts';
import type { ClusterParts } from '../cluster/build.ts';
import type { TokenParts } from '../tokens/build.ts';
import { AccessTokens } from './authenticators/access-tokens.ts';
import {
  aggregatedAuthenticator,
  gatewayAuthenticator,
  platformToken,
  requestHeader,
  tokenReview,
  type Authenticator,
  type TokenAuthenticator,
} from './authenticators/index.ts';
import { RequestHeaderSource } from './authenticators/request-header-config.ts';
import { accessReview } from './authorizers/access-review.ts';
import type { AccessReviews } from './authorizers/authorizer.ts';

export interface AuthParts {
  readonly accessTokens: AccessTokens;
  readonly reviewToken: TokenAuthenticator;
  readonly gatewayAuthentication: Authenticator;
  readonly aggregatedAuthentication: Authenticator;
  readonly authorizer: AccessReviews;
}

export function buildAuth(
  { client, live, lifecycle, clock, log }: ClusterParts,
  { tokens }: TokenParts,
  { sessions, directory }: AccountParts,
): AuthParts {
  const accessTokens = new AccessTokens({ tokens, sessions, directory });
  const audiences = async () => {
    const own = await client.audiences();
    return own.length === 0 ? [] : [live.value.authentication.issuer, ...own];
  };
  const now = () => clock.now();
  const monotonic = () => clock.monotonic();
  const reviewToken = tokenReview(client, audiences, monotonic);
  const requestHeaders = lifecycle.add('request-header-ca', new RequestHeaderSource({ client, clock, log }));
  const byToken = [platformToken(accessTokens), reviewToken];
  return {
    accessTokens,
    reviewToken,
    gatewayAuthentication: gatewayAuthenticator(byToken),
    aggregatedAuthentication: aggregatedAuthenticator(
      requestHeader(() => requestHeaders.value, now),
      byToken,
    ),
    authorizer: accessReview(client, monotonic),
  };
}
