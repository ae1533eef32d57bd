/** The authenticators, in the order in which a request is shown to them. */
import type { Request } from 'express';
import { bearer } from './bearer.ts';
import type { Authenticator, TokenAuthenticator } from './authenticator.ts';
import type { UserInfo } from '../user.ts';

export type { Authenticator } from './authenticator.ts';
export { platformToken } from './platform-token.ts';
export { requestHeader } from './request-header.ts';
export { tokenReview } from './token-review.ts';

/** The first that recognises a credential decides. */
const union =
  (members: readonly Authenticator[]): Authenticator =>
  async (request: Request): Promise<UserInfo | undefined> => {
    for (const authenticate of members) {
      const user = await authenticate(request);
      if (user !== undefined) return user;
    }
    return undefined;
  };

export const gatewayAuthenticator = (tokens: readonly TokenAuthenticator[]): Authenticator => bearer(tokens);

export const aggregatedAuthenticator = (proxy: Authenticator, tokens: readonly TokenAuthenticator[]): Authenticator =>
  union([proxy, bearer(tokens)]);
