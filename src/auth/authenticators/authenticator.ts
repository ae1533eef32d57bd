import type { Request } from 'express';
import type { UserInfo } from '../user.ts';

/**
 * Recognises one kind of credential. Undefined: the request carries none of this kind, ask the next one.
 * Throws StatusError 401 for a credential of this kind that is not good, 503 when that cannot be told now.
 */
export type Authenticator = (request: Request) => Promise<UserInfo | undefined>;

/** The same for a bearer token that was found in a request already. `source`: the address that sent it. */
export type TokenAuthenticator = (token: string, source: string) => Promise<UserInfo | undefined>;
