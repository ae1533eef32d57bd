import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { required } from '../form.ts';
import { narrowScope } from '../scope.ts';
import type { Grant, GrantParts } from './grant.ts';

/**
 * RFC 6749 section 6, with rotation (RFC 9700 section 4.14.2). Whatever is wrong with the token is one answer; a token that was
 * used before ends its session.
 */
export function refreshTokenGrant({ directory, sessions }: GrantParts): Grant {
  return {
    grantType: 'refresh_token',
    parameters: [
      { name: 'refresh_token', required: true, description: 'The refresh token that came last' },
      { name: 'scope', required: false, description: 'The granted scope or a part of it' },
    ],
    async grant({ form, client, context, demandAudience }) {
      const token = required(form, 'refresh_token');
      const standing = (session: Session): Subject | undefined =>
        session.spec.clientID === client.name ? subjectOf(session, directory) : undefined;
      // Asked for too much, the token must not be spent.
      let scope: string | undefined;
      const refreshed = await sessions.rotation.refresh(token, (session) => {
        const subject = standing(session);
        if (subject === undefined) return false;
        demandAudience(subject);
        scope = narrowScope(form.get('scope'), session.spec.scope);
        return true;
      });
      const subject = typeof refreshed === 'string' ? undefined : standing(refreshed.session);
      if (typeof refreshed === 'string' || subject === undefined) {
        context.log.info('refresh refused', {
          auditID: context.auditID,
          client: client.name,
          why: refreshed,
          sourceIP: context.sourceIP,
        });
        throw new OAuthError('invalid_grant', 'the refresh token is unknown, expired, revoked or was used before');
      }
      return { ...refreshed, subject, scope };
    },
  };
}
