export type { Authenticator, TokenAuthenticator } from './authenticator.ts';
export { platformToken } from './platform-token.ts';
export { requestHeader } from './request-header.ts';
export { aggregatedAuthenticator, gatewayAuthenticator } from './strategies.ts';
export { expiryOf, tokenReview } from './kube-token-review.ts';
