import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import type { AccessTokens } from '../../auth/authenticators/access-tokens.ts';
import { json } from '../../http/route.ts';
import { described, flag, integer, list, named, object, oneOf, text, type TypeOf } from '../../http/schema.ts';
import { sendJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { clientAuthenticationMethods } from '../client-authentication.ts';
import { canInspect, clientRoute, tokenFields } from '../client-request.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** RFC 7662 section 2.2. */
const introspectionSchema = named(
  'IntrospectionResponse',
  object(
    { active: described('Whether the token is valid now. If `false`, the response has no other property', flag) },
    {
      token_type: oneOf('Bearer'),
      client_id: described('Client to which the token was issued', text),
      scope: described('Granted scopes, separated by spaces', text),
      iss: described('Issuer of the token', text),
      aud: described('Audience of the token', text),
      jti: described('Unique identifier of the token', text),
      iat: described('Time of issue in Unix seconds', integer),
      exp: described('Expiry in Unix seconds', integer),
      sub: described('UID of the user, the ServiceAccount or the client', text),
      username: described('Username, as used by RBAC', text),
      groups: described('Groups of the user, as used by RBAC', list(text)),
    },
  ),
);

type Introspection = TypeOf<typeof introspectionSchema>;

interface IntrospectionParts {
  readonly directory: Directory;
  readonly limiter: LoginLimiter;
  readonly sessions: Sessions;
  readonly accessTokens: AccessTokens;
  readonly issuer: () => string;
}

/**
 * Serves `POST /oauth/introspect` (RFC 7662), which returns whether a token is active, and the claims of an active
 * token. Tokens that are unknown, expired, revoked or issued to other clients get only `active: false` (section 2.2).
 */
export function introspectionEndpoint({
  directory,
  limiter,
  sessions,
  accessTokens,
  issuer,
}: IntrospectionParts): OAuthEndpoint {
  const path = '/oauth/introspect';

  async function ofAccessToken(token: string, client: Client): Promise<Omit<Introspection, 'active'> | undefined> {
    const standing = await accessTokens.validate(token);
    if (standing === undefined || !canInspect(client, standing.claims.clientID)) return undefined;
    const { claims, subject } = standing;
    return {
      token_type: 'Bearer',
      client_id: claims.clientID,
      ...(claims.scope === undefined ? {} : { scope: claims.scope }),
      iss: issuer(),
      aud: claims.aud,
      jti: claims.jti,
      iat: claims.iat,
      exp: claims.exp,
      sub: subject.uid,
      username: subject.username,
      groups: subject.groups,
    };
  }

  /**
   * Reports refresh tokens only to their own client, because resource servers must never accept them as bearer tokens.
   */
  async function ofRefreshToken(token: string, client: Client): Promise<Omit<Introspection, 'active'> | undefined> {
    const presented = await sessions.rotation.inspect(token);
    if (presented === undefined || !presented.isCurrent) return undefined;
    const { session } = presented;
    const { clientID, scope, createdAt, expiresAt } = session.spec;
    const subject = subjectOf(session, directory);
    if (subject === undefined || clientID !== client.name) return undefined;
    return {
      client_id: clientID,
      ...(scope === undefined ? {} : { scope }),
      iss: issuer(),
      iat: Math.floor(parseMilliseconds(createdAt) / 1_000),
      exp: Math.floor(parseMilliseconds(expiresAt) / 1_000),
      sub: subject.uid,
      username: subject.username,
    };
  }

  return {
    routes: [
      clientRoute({
        path,
        summary: 'Check whether a token is valid',
        description:
          'Returns the state of a token (RFC 7662) to a client with a secret. A client can check its own tokens and, with `introspection: true` in its configuration, the access tokens of all clients. All other tokens, and all tokens with the audience `kubernetes`, are reported as `active: false`.',
        directory,
        limiter,
        formName: 'IntrospectionRequest',
        fields: tokenFields,
        responses: json(introspectionSchema, 'The state of the token'),
        async handler({ fields: { token }, client, res }) {
          const found = (await ofAccessToken(token, client)) ?? (await ofRefreshToken(token, client));
          const body: Introspection = { active: found !== undefined, ...found };
          sendJSON(res, body, uncached);
        },
      }),
    ],
    metadata: (at) => ({
      introspection_endpoint: at(path),
      introspection_endpoint_auth_methods_supported: clientAuthenticationMethods,
    }),
  };
}
