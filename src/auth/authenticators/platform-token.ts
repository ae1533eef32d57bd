import { unauthorized } from '../../runtime/errors.ts';
import type { AccessTokens, StandingToken } from './access-tokens.ts';
import { PasswordChangeRequired } from './password-change.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { TokenAuthenticator } from './authenticator.ts';

/** Our own access tokens, as bearers. */
export function platformToken(accessTokens: AccessTokens): TokenAuthenticator {
  /** One UserInfo a subject and session, so that caches of access reviews can key on it cheaply. */
  const users = new WeakMap<object, Map<string, UserInfo>>();

  function userOf({ subject, session, claims: { sid } }: StandingToken): UserInfo {
    let bySession = users.get(subject);
    if (bySession === undefined) users.set(subject, (bySession = new Map<string, UserInfo>()));
    let user = bySession.get(sid);
    if (user === undefined) {
      if (bySession.size > 1_000) bySession.clear();
      user = withAuthenticated({
        username: subject.username,
        uid: subject.uid,
        groups: subject.groups,
        // kube-apiserver's TokenReview has named it.
        via: session.spec.subjectKind === 'ServiceAccount' ? 'token-review' : 'token',
        sessionID: sid,
      });
      bySession.set(sid, user);
    }
    return user;
  }

  async function authenticate(token: string): Promise<UserInfo | undefined> {
    const standing = await accessTokens.judge(token);
    if (standing !== undefined) return userOf(standing);
    if (!accessTokens.isOurs(token)) return undefined;
    const limited = await accessTokens.judgeForPasswordChange(token);
    throw limited === undefined
      ? unauthorized({ error: 'invalid_token' })
      : new PasswordChangeRequired(userOf(limited));
  }

  return Object.assign(authenticate, {
    known(key: string) {
      const standing = accessTokens.known(key);
      return standing && userOf(standing);
    },
  });
}
