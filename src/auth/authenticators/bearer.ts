import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { unauthorized } from '../../runtime/errors.ts';
import { bearerCredentials, isBearerToken } from './bearer-credentials.ts';
import { fingerprint } from '../../tokens/jwt.ts';
import type { UserInfo } from '../user.ts';
import { subprotocolToken } from './web-socket-request.ts';
import type { Authenticator, Source, TokenAuthenticator } from './authenticator.ts';

type Found = (error: unknown, token?: string) => void;

/**
 * RFC 6750 section 2.1: a token in the Authorization header, or among the subprotocols of a WebSocket, judged by the first of
 * `authenticators` that recognises it.
 * passport finds the token; the response is ours, because the strategy's own 401 is plain text. A token that has been authenticated
 * before needs neither: nine in ten requests bring one.
 */
export function bearer(authenticators: readonly TokenAuthenticator[]): Authenticator {
  const strategies = new passport.Passport();
  strategies.use(new Strategy((token: string, done: Found) => done(null, token)));
  const verify = async (token: string, source: Source): Promise<UserInfo> => {
    for (const authenticate of authenticators) {
      const user = await authenticate(token, source);
      if (user !== undefined) return user;
    }
    throw unauthorized({ error: 'invalid_token' });
  };
  const find = (request: Request): Promise<string> =>
    new Promise((resolve, reject) => {
      // The strategy itself reports no errors: without a token it reports false.
      const decide = (_: unknown, token?: unknown): void =>
        typeof token === 'string' ? resolve(token) : reject(unauthorized({ error: 'invalid_token' }));
      const authenticate = strategies.authenticate('bearer', { session: false }, decide) as (
        request: Request,
        response: unknown,
        next: (error?: unknown) => void,
      ) => void;
      authenticate(request, undefined, reject);
    });
  const judgeWhole = async (request: Request, source: Source): Promise<UserInfo> =>
    await verify(await find(request), source);
  return (request, source) => {
    const credentials = bearerCredentials(request.headers.authorization);
    if (credentials !== undefined) {
      const user = isBearerToken(credentials) ? knownUser(credentials, authenticators) : undefined;
      if (user !== undefined) return user;
      // passport allows one space after the scheme.
      request.headers.authorization = `Bearer ${credentials}`;
      return judgeWhole(request, source);
    }
    const offered = subprotocolToken(request);
    if (offered === undefined) return undefined;
    return knownUser(offered, authenticators) ?? verify(offered, source);
  };
}

function knownUser(token: string, authenticators: readonly TokenAuthenticator[]): UserInfo | undefined {
  const key = fingerprint(token);
  for (const { known } of authenticators) {
    const user = known?.(key);
    if (user !== undefined) return user;
  }
  return undefined;
}
