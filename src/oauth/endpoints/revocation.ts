import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Tokens } from '../../tokens/jwt.ts';
import { sendText, uncached, type OAuthEndpoint } from '../json-response.ts';
import { clientIdentificationMethods } from '../client-authentication.ts';
import { canInspect, clientRoute, tokenFields } from '../client-request.ts';

/**
 * Serves `POST /oauth/revoke` (RFC 7009), which revokes the session of an access or refresh token before it responds.
 * The revocation covers all tokens of the session. The response is the same for every token (section 2.2).
 */
export function revocationEndpoint(parts: {
  directory: Directory;
  limiter: LoginLimiter;
  sessions: Sessions;
  tokens: Tokens;
}): OAuthEndpoint {
  const { directory, limiter, sessions, tokens } = parts;
  const path = '/oauth/revoke';

  /**
   * Returns the session and the client of a token. A used refresh token is also accepted, because this server issued
   * it.
   */
  async function find(token: string): Promise<{ sid: string; clientID: string } | undefined> {
    const claims = tokens.verifyForAny(token);
    if (claims !== undefined) return claims;
    const presented = await sessions.rotation.inspect(token);
    return presented && { sid: presented.session.metadata.name, clientID: presented.session.spec.clientID };
  }

  return {
    routes: [
      clientRoute({
        path,
        summary: 'Revoke the session of a token',
        description:
          'Revokes the session of an access or refresh token, and all tokens of that session (RFC 7009). Every ' +
          'replica rejects the tokens within a second. kube-apiserver may accept them for longer: until its webhook ' +
          'cache expires, or, if it validates tokens itself, until the tokens expire. A client can revoke its own ' +
          'tokens, and with `introspection: true` in its configuration those of all clients.',
        directory,
        limiter,
        mayBePublic: true,
        formName: 'RevocationRequest',
        fields: tokenFields,
        responses: {
          200: { description: 'The session was revoked, or the token is unknown or belongs to another client' },
        },
        async handler({ fields, client, context, res }) {
          const found = await find(fields.token);
          if (found !== undefined && canInspect(client, found.clientID)) {
            await sessions.revoke(found.sid);
            const { auditID, sourceIP } = context;
            context.log.info('session revoked', { auditID, client: client.name, sid: found.sid, sourceIP });
          }
          sendText(res, '', uncached);
        },
      }),
    ],
    metadata: (at) => ({
      revocation_endpoint: at(path),
      revocation_endpoint_auth_methods_supported: clientIdentificationMethods,
    }),
  };
}
