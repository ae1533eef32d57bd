import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { unauthorized } from '../../errors.ts';
import type { UserInfo } from '../user.ts';
import type { Authenticator, TokenAuthenticator } from './authenticator.ts';

type Verified = (error: unknown, user?: UserInfo | false) => void;

/**
 * RFC 6750 section 2.1: a token in the Authorization header, judged by the first of `authenticators` that recognises it.
 * passport finds the token; the answer is ours, because the strategy's own 401 is plain text.
 */
export function bearer(authenticators: readonly TokenAuthenticator[]): Authenticator {
  const strategies = new passport.Passport();
  const verify = async (token: string, source: string): Promise<UserInfo | false> => {
    for (const authenticate of authenticators) {
      const user = await authenticate(token, source);
      if (user !== undefined) return user;
    }
    return false;
  };
  strategies.use(
    new Strategy({ passReqToCallback: true }, ({ socket }: Request, token: string, done: Verified) => {
      verify(token, socket?.remoteAddress ?? '').then(
        (user) => done(null, user),
        (error: unknown) => done(error),
      );
    }),
  );
  return async (request: Request) => {
    if (!/^bearer /i.test(request.headers.authorization ?? '')) return undefined;
    return await new Promise((resolve, reject) => {
      const decide = (error: unknown, user?: UserInfo | false | null): void => {
        if (error !== null && error !== undefined)
          reject(error instanceof Error ? error : new Error('bearer', { cause: error }));
        else if (user === undefined || user === false || user === null)
          reject(unauthorized({ error: 'invalid_token' }));
        else resolve(user);
      };
      const judge = strategies.authenticate('bearer', { session: false }, decide) as (
        request: Request,
        response: unknown,
        next: (error?: unknown) => void,
      ) => void;
      judge(request, undefined, (error) => decide(error ?? null));
    });
  };
}
