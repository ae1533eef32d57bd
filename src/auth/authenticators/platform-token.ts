import { iamAPIVersion, iamGroup } from '../../config/names.ts';
import { invalidToken, StatusError } from '../../runtime/errors.ts';
import type { TokenClaims } from '../../tokens/jwt.ts';
import type { AccessTokens, ValidToken } from './access-tokens.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { TokenAuthenticator } from './authenticator.ts';

/**
 * Error for an authenticated user who is only allowed to change their password. If the caller of an authenticator does
 * not handle this error, the request is refused.
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

/** Authenticates access tokens of this server, and id_tokens of the clients that `gateway.idTokenClients` lists. */
export function platformToken(accessTokens: AccessTokens): TokenAuthenticator {
  /**
   * Users by subject and session ID. Each object is reused, because it is the key of the gateway's cache of
   * impersonation headers.
   */
  const users = new WeakMap<object, Map<string, UserInfo>>();

  function userOf({ subject, session, claims: { sid } }: ValidToken<TokenClaims>): UserInfo {
    let bySession = users.get(subject);
    if (bySession === undefined) users.set(subject, (bySession = new Map<string, UserInfo>()));
    let user = bySession.get(sid);
    if (user === undefined) {
      if (bySession.size > 1_000) bySession.clear();
      user = withAuthenticated({
        username: subject.username,
        uid: subject.uid,
        groups: subject.groups,
        // The name of a ServiceAccount comes from a TokenReview of kube-apiserver.
        via: session.spec.subjectKind === 'ServiceAccount' ? 'token-review' : 'token',
        sessionID: sid,
      });
      bySession.set(sid, user);
    }
    return user;
  }

  async function authenticate(token: string): Promise<UserInfo | undefined> {
    const valid = await accessTokens.validateBearer(token);
    if (valid?.subject.passwordChangeRequired === true) throw new PasswordChangeRequired(userOf(valid));
    if (valid !== undefined) return userOf(valid);
    if (accessTokens.isOurs(token)) throw invalidToken(accessTokens.problemOf(token));
    return undefined;
  }

  return Object.assign(authenticate, {
    known(key: string) {
      const valid = accessTokens.known(key);
      return valid && userOf(valid);
    },
  });
}
