import type { Request } from 'express';
import type { UserInfo } from '../user.ts';

/**
 * Caller to which the limits on token reviews apply: the client's address, which `requests.trustedProxies` determines,
 * or the user of a stream that is rechecked.
 */
export type Source = string | { readonly streamsOf: string };

/**
 * Authenticates one kind of credential. Returns undefined if the request has no credential of this kind, so that the
 * next authenticator is tried. Throws StatusError 401 for an invalid credential of this kind, and 503 if it cannot be
 * validated now.
 */
export type Authenticator = (request: Request, source: Source) => UserInfo | undefined | Promise<UserInfo | undefined>;

/** Like Authenticator, for a bearer token that was extracted from a request. */
export interface TokenAuthenticator {
  (token: string, source: Source): Promise<UserInfo | undefined>;
  /**
   * Returns the user of a cached token by its fingerprint. Returns undefined if that would need a request, or if the
   * token must be refused. The token is then authenticated in full.
   */
  readonly known?: (fingerprint: string) => UserInfo | undefined;
}
