import { createHash, timingSafeEqual } from 'node:crypto';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { required } from '../form.ts';
import type { Grant, GrantParts } from './grant.ts';

/** RFC 7636 section 4.1. */
const verifierShape = /^[A-Za-z0-9._~-]{43,128}$/;

/** RFC 7636 section 4.6, of the method S256. */
const answers = (verifier: string, challenge: string): boolean => {
  const made = createHash('sha256').update(verifier).digest();
  const wanted = Buffer.from(challenge, 'base64url');
  return made.length === wanted.length && timingSafeEqual(made, wanted);
};

/** RFC 6749 section 4.1.3 with PKCE: whatever does not fit the code is one answer, and a code that comes again ends what it began. */
export function authorizationCodeGrant({ directory, sessions }: GrantParts): Grant {
  const grantType = 'authorization_code';
  return {
    grantType,
    parameters: [
      { name: 'code', required: true, description: 'The authorization code' },
      { name: 'redirect_uri', required: true, description: 'The same as in the authorization request' },
      { name: 'code_verifier', required: true, description: 'What code_challenge was made from (RFC 7636)' },
    ],
    async grant({ form, client, context, demandAudience }) {
      const code = required(form, 'code');
      const redirectURI = required(form, 'redirect_uri');
      const verifier = required(form, 'code_verifier');
      if (!verifierShape.test(verifier))
        throw new OAuthError(
          'invalid_request',
          'code_verifier must be 43 to 128 letters, digits, "-", ".", "_" and "~"',
        );
      const fits = ({ spec }: Session): boolean =>
        spec.clientID === client.name &&
        spec.code?.redirectURI === redirectURI &&
        answers(verifier, spec.code.challenge ?? '');
      let subject: Subject | undefined;
      const accept = (session: Session): boolean => {
        subject = fits(session) ? subjectOf(session, directory) : undefined;
        if (subject !== undefined) demandAudience(subject);
        return subject !== undefined;
      };
      const redeemed = await sessions.codes.redeem(code, accept, client.grantTypes.includes('refresh_token'));
      if (typeof redeemed === 'string' || subject === undefined) {
        const { auditID, sourceIP } = context;
        context.log.info('authorization code refused', {
          auditID,
          client: client.name,
          why: typeof redeemed === 'string' ? redeemed : 'ended',
          sourceIP,
        });
        throw new OAuthError(
          'invalid_grant',
          'the code is unknown, expired or was used before, or redirect_uri or code_verifier is another than it was made for',
        );
      }
      const { scope, code: origin } = redeemed.session.spec;
      return { ...redeemed, subject, scope, ...(origin?.nonce === undefined ? {} : { nonce: origin.nonce }) };
    },
  };
}
