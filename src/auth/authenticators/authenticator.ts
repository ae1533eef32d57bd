import type { Request } from 'express';
import type { UserInfo } from '../user.ts';

/** The address of the client, as `requests.trustedProxies` determines it; for a recheck of an open stream its user. */
export type Source = string | { readonly streamsOf: string };

/**
 * Recognises one kind of credential. Undefined: the request carries none of this kind, ask the next one.
 * Throws StatusError 401 for a credential of this kind that is not good, 503 when that cannot be told now.
 * `source`: whose share of a limit is used.
 */
export type Authenticator = (request: Request, source: Source) => UserInfo | undefined | Promise<UserInfo | undefined>;

/** The same for a bearer token that was found in a request already. */
export interface TokenAuthenticator {
  /** `source`: whose share of a limit is used. */
  (token: string, source: Source): Promise<UserInfo | undefined>;
  /**
   * The user of a token that was judged before and is good now, by its fingerprint. Undefined wherever there is anything to ask or
   * to refuse: that is for a whole judgement.
   */
  readonly known?: (fingerprint: string) => UserInfo | undefined;
}
