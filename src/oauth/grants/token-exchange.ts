import { reviewedSubject } from '../../accounts/directory/subjects.ts';
import { expiryOf } from '../../auth/authenticators/index.ts';
import type { UserInfo } from '../../auth/user.ts';
import { OAuthError, StatusError } from '../../runtime/errors.ts';
import { described, oneOf, text } from '../../http/schema.ts';
import { programScope, programScopeParameter } from '../scope.ts';
import { defineGrant, type Grant, type GrantParts, type GrantResult } from './grant.ts';

const tokenType = (name: string): string => `urn:ietf:params:oauth:token-type:${name}`;
const subjectTypes = [tokenType('jwt'), tokenType('access_token')];
const issuedType = tokenType('access_token');

/** Returns the error for any problem of the token. RFC 8693 section 2.2.2 requires this error code. */
const refused = (): OAuthError =>
  new OAuthError('invalid_request', 'subject_token must be a valid token of a ServiceAccount');

/**
 * Implements RFC 8693: exchanges a ServiceAccount token, which kube-apiserver reviews, for a token of this server. The
 * new token does not expire later than the ServiceAccount token. The session stores the reviewed user, because the
 * directory does not contain ServiceAccounts.
 */
export function tokenExchangeGrant({ sessions, accessTokens, reviewToken, issuer }: GrantParts): Grant {
  async function review(token: string, source: string): Promise<UserInfo & { readonly uid: string }> {
    // kube-apiserver could send the review of a token of this server back to this server.
    if (accessTokens.isOurs(token)) throw refused();
    let user: UserInfo | undefined;
    try {
      user = await reviewToken(token, source);
    } catch (error) {
      if (error instanceof StatusError && error.code === 401) throw refused();
      throw error;
    }
    const { username = '', uid } = user ?? {};
    if (user === undefined || uid === undefined || !username.startsWith('system:serviceaccount:')) throw refused();
    return { ...user, uid };
  }

  return defineGrant({
    grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
    parameters: {
      subject_token: described('Token of a ServiceAccount', text),
      subject_token_type: described(`Either ${subjectTypes.join(' or ')}`, oneOf(...subjectTypes)),
      requested_token_type: described(`Only ${issuedType}`, oneOf(issuedType).optional()),
      scope: programScopeParameter,
    },
    async find({ form, fields, client, context, audience }) {
      // The audience of the ServiceAccount's token may exclude kube-apiserver, and an exchange must not add
      // kube-apiserver to the audience.
      if (audience !== issuer())
        throw new OAuthError('invalid_target', `the audience of a token exchange must be ${issuer()}`);
      if (form.has('actor_token') || form.has('actor_token_type'))
        throw new OAuthError('invalid_request', 'actor_token is not supported');
      const token = fields.subject_token;
      const scope = programScope(fields.scope, client.scopes);
      const { username, uid, groups } = await review(token, context.sourceIP);
      async function redeem(): Promise<GrantResult> {
        const session = await sessions.createFixed(
          {
            subjectKind: 'ServiceAccount',
            userName: username,
            userUID: uid,
            groups,
            clientID: client.name,
            ...(scope === undefined ? {} : { scope }),
          },
          expiryOf(token),
        );
        context.log.info('token exchanged', {
          auditID: context.auditID,
          username,
          client: client.name,
          sid: session.metadata.name,
          sourceIP: context.sourceIP,
        });
        return { session, subject: reviewedSubject(session), scope, issuedTokenType: issuedType };
      }
      return { subject: { username, uid, groups, displayName: undefined, email: undefined }, redeem };
    },
  });
}
