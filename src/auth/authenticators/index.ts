/** The authenticators, in the order in which a request is shown to them. */
import type { Request } from 'express';
import { bearer } from './bearer.ts';
import type { Authenticator, TokenAuthenticator } from './authenticator.ts';
import type { UserInfo } from '../user.ts';

export type { Authenticator, TokenAuthenticator } from './authenticator.ts';
export { platformToken } from './platform-token.ts';
export { requestHeader } from './request-header.ts';
export { expiryOf, tokenReview } from './token-review.ts';

export const gatewayAuthenticator = (tokens: readonly TokenAuthenticator[]): Authenticator => bearer(tokens);

/** The first that recognises a credential decides. */
export function aggregatedAuthenticator(
  proxy: (request: Request) => UserInfo | undefined,
  tokens: readonly TokenAuthenticator[],
): Authenticator {
  const byToken = bearer(tokens);
  return (request, source) => proxy(request) ?? byToken(request, source);
}
