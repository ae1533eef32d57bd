import { subjectOf } from '../../accounts/directory/subjects.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { described, text } from '../../http/schema.ts';
import { narrowScope } from '../scope.ts';
import { defineGrant, type Grant, type GrantParts, type GrantRequest } from './grant.ts';

export const refreshGrantType = 'refresh_token';

function refused({ client, context }: GrantRequest, reason: string): OAuthError {
  const { auditID, sourceIP, log } = context;
  log.info('refresh refused', { auditID, client: client.name, reason, sourceIP });
  return new OAuthError('invalid_grant', 'the refresh token is unknown, expired, revoked or was used before');
}

/**
 * Implements RFC 6749 section 6, with rotation (RFC 9700 section 4.14.2). The response is the same for all problems of
 * the token. If a token is reused, its session is revoked.
 */
export function refreshTokenGrant({ directory, sessions }: GrantParts): Grant {
  return defineGrant({
    grantType: refreshGrantType,
    parameters: {
      refresh_token: described('Latest refresh token of the session', text),
      scope: described('Granted scope, or a subset of the granted scope', text.optional()),
    },
    async find(request) {
      const { fields, client, isRetry } = request;
      const found = await sessions.rotation.find(fields.refresh_token, client.name, isRetry);
      if (typeof found === 'string') throw refused(request, found);
      const subject = subjectOf(found.session, directory);
      if (subject === undefined) throw refused(request, 'ended');
      const scope = narrowScope(fields.scope, found.session.spec.scope);
      return {
        subject,
        redeem: async () => {
          const refreshed = await found.use();
          if (refreshed === 'changed') return refreshed;
          // The user may have been changed during the write.
          const now = subjectOf(refreshed.session, directory);
          if (now === undefined) throw refused(request, 'ended');
          return { ...refreshed, subject: now, scope };
        },
      };
    },
  });
}
