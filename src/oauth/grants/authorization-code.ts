import { createHash, timingSafeEqual } from 'node:crypto';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { described, text } from '../../http/schema.ts';
import { defineGrant, type Grant, type GrantParts, type GrantRequest } from './grant.ts';
import { refreshGrantType } from './refresh-token.ts';

export const authorizationCodeGrantType = 'authorization_code';

/** RFC 7636 section 4.1. */
const verifier = text.regex(/^[A-Za-z0-9._~-]{43,128}$/, 'must be 43 to 128 letters, digits, "-", ".", "_" and "~"');

/** Returns whether the verifier matches the challenge by the method S256 (RFC 7636 section 4.6). */
const matches = (verifierText: string, challenge: string): boolean => {
  const actual = createHash('sha256').update(verifierText).digest();
  const expected = Buffer.from(challenge, 'base64url');
  return actual.length === expected.length && timingSafeEqual(actual, expected);
};

function refused({ client, context }: GrantRequest, reason: string): OAuthError {
  const { auditID, sourceIP, log } = context;
  log.info('authorization code refused', { auditID, client: client.name, reason, sourceIP });
  return new OAuthError(
    'invalid_grant',
    'the code is unknown, expired or was used before, or redirect_uri or code_verifier does not match it',
  );
}

/**
 * Implements RFC 6749 section 4.1.3 with PKCE. The response is the same for all problems of the code. If a code is
 * reused, its session is revoked.
 */
export function authorizationCodeGrant({ directory, sessions }: GrantParts): Grant {
  return defineGrant({
    grantType: authorizationCodeGrantType,
    parameters: {
      code: described('Authorization code', text),
      redirect_uri: described('`redirect_uri` of the authorization request', text),
      code_verifier: described('Secret from which `code_challenge` was derived', verifier),
    },
    async find(request) {
      const { fields, client, isRetry } = request;
      const found = await sessions.codes.find(fields.code, client.name, isRetry);
      if (typeof found === 'string') throw refused(request, found);
      const { scope, code: origin } = found.session.spec;
      const subject = subjectOf(found.session, directory);
      const isRight =
        origin?.redirectURI === fields.redirect_uri && matches(fields.code_verifier, origin.challenge ?? '');
      if (!isRight || subject === undefined) throw refused(request, 'unknown');
      return {
        subject,
        redeem: async () => {
          const redeemed = await found.use(client.grantTypes.includes(refreshGrantType));
          if (redeemed === 'changed') return redeemed;
          if (redeemed === 'ended') throw refused(request, redeemed);
          return { ...redeemed, subject, scope, ...(origin.nonce === undefined ? {} : { nonce: origin.nonce }) };
        },
      };
    },
  });
}
