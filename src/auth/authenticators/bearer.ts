import type { Request } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { unauthorized } from '../../errors.ts';
import { fingerprint } from '../tokens.ts';
import type { UserInfo } from '../user.ts';
import { subprotocolToken } from '../web-socket-request.ts';
import type { Authenticator, TokenAuthenticator } from './authenticator.ts';

type Verified = (error: unknown, user?: UserInfo) => void;

/** As clients send it; every other spelling, and whatever is wrong, is passport's. */
const usual = /^Bearer ([A-Za-z0-9\-._~+/]+=*)$/;

/**
 * RFC 6750 section 2.1: a token in the Authorization header, or among the subprotocols of a WebSocket, judged by the first of
 * `authenticators` that recognises it.
 * passport finds the token; the answer is ours, because the strategy's own 401 is plain text. A token that has been judged before has
 * no need of either: nine in ten requests bring one.
 */
export function bearer(authenticators: readonly TokenAuthenticator[]): Authenticator {
  const strategies = new passport.Passport();
  const verify = async (token: string, source: string): Promise<UserInfo> => {
    for (const authenticate of authenticators) {
      const user = await authenticate(token, source);
      if (user !== undefined) return user;
    }
    throw unauthorized({ error: 'invalid_token' });
  };
  strategies.use(
    new Strategy({ passReqToCallback: true }, ({ socket }: Request, token: string, done: Verified) => {
      verify(token, socket?.remoteAddress ?? '').then(
        (user) => done(null, user),
        (error: unknown) => done(error),
      );
    }),
  );
  const judgeWhole = (request: Request): Promise<UserInfo> =>
    new Promise((resolve, reject) => {
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
  return (request: Request) => {
    const header = request.headers.authorization ?? '';
    const token = usual.exec(header)?.[1];
    if (token !== undefined) return knownUser(token, authenticators) ?? judgeWhole(request);
    if (/^bearer /i.test(header)) return judgeWhole(request);
    const offered = subprotocolToken(request);
    if (offered === undefined) return undefined;
    return knownUser(offered, authenticators) ?? verify(offered, request.socket?.remoteAddress ?? '');
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
