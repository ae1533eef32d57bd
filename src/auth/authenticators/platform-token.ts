import type { Directory } from '../../accounts/directory.ts';
import type { Session, Sessions } from '../../accounts/sessions.ts';
import { unauthorized } from '../../errors.ts';
import type { AccessClaims, Tokens } from '../tokens.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { TokenAuthenticator } from './authenticator.ts';

/**
 * Our own access tokens. The token only says who it was made for: session, user, password and client are looked up at each
 * request, so that a revocation or a changed group counts at once.
 */
export function platformToken(options: {
  tokens: Tokens;
  sessions: Sessions;
  directory: Directory;
}): TokenAuthenticator {
  const { tokens, sessions, directory } = options;
  /** One UserInfo an account and session, so that caches of access reviews can key on it cheaply. */
  const users = new WeakMap<object, Map<string, UserInfo>>();

  /** Undefined unless all that the token was made for still stands. */
  function userOf(claims: AccessClaims, session: Session | undefined): UserInfo | undefined {
    const account = directory.account(claims.username);
    const stands =
      session !== undefined &&
      account !== undefined &&
      account.active &&
      account.uid === claims.sub &&
      session.spec.userUID === account.uid &&
      session.spec.credentialID === account.credentialID &&
      session.spec.clientID === claims.clientID &&
      directory.client(claims.clientID) !== undefined;
    if (!stands) return undefined;
    let bySession = users.get(account);
    if (bySession === undefined) users.set(account, (bySession = new Map<string, UserInfo>()));
    let user = bySession.get(claims.sid);
    if (user === undefined) {
      if (bySession.size > 1_000) bySession.clear();
      user = withAuthenticated({
        username: account.username,
        uid: account.uid,
        groups: account.groups.filter((group) => !group.startsWith('system:')),
        via: 'token',
        sessionID: claims.sid,
      });
      bySession.set(claims.sid, user);
    }
    return user;
  }

  async function authenticate(token: string): Promise<UserInfo | undefined> {
    const claims = tokens.verifyAccess(token);
    if (claims === undefined) {
      if (tokens.isOurs(token)) throw unauthorized({ error: 'invalid_token' });
      return undefined;
    }
    const user = userOf(claims, await sessions.active(claims.sid));
    if (user === undefined) throw unauthorized({ error: 'invalid_token' });
    return user;
  }

  return Object.assign(authenticate, {
    known(key: string) {
      const claims = tokens.known(key);
      return claims && userOf(claims, sessions.known(claims.sid));
    },
  });
}
