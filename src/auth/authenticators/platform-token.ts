import { iamAPIVersion, iamGroup } from '../../config/names.ts';
import { unauthorized, StatusError } from '../../runtime/errors.ts';
import type { AccessTokens, StandingToken } from './access-tokens.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { TokenAuthenticator } from './authenticator.ts';

/**
 * The user is who they say, and may do nothing but change the password. Whoever asks for an identity and does not know of this error
 * refuses the request.
 */
export class PasswordChangeRequired extends StatusError {
  readonly user: UserInfo;

  constructor(user: UserInfo) {
    super(
      'Forbidden',
      403,
      `the password must be changed first: PUT /kapis/${iamAPIVersion}/users/~/password with currentPassword and password`,
      {
        details: {
          group: iamGroup,
          kind: 'users',
          name: user.username,
          causes: [{ reason: 'PasswordChangeRequired' }],
        },
      },
    );
    this.user = user;
  }
}

/** Our own access tokens, as bearers. */
export function platformToken(accessTokens: AccessTokens): TokenAuthenticator {
  /** One UserInfo a subject and session: the gateway keeps the impersonation headers of each. */
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
