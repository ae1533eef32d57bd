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
import { clientRoute, mayKnow, tokenFields } from '../client-request.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** RFC 7662 section 2.2. */
const introspectionSchema = named(
  'IntrospectionResponse',
  object(
    { active: described('If it is false there is nothing else', flag) },
    {
      token_type: oneOf('Bearer'),
      client_id: described('The client to which it was issued', text),
      scope: described('What was granted, by blanks', text),
      iss: described('The issuer', text),
      aud: described('For whom it is', text),
      jti: described('Its own name', text),
      iat: described('Seconds since 1970', integer),
      exp: described('Seconds since 1970', integer),
      sub: described('The uid of the user, or the name of the client', text),
      username: described('Whose it is', text),
      groups: described('Of the user, as RBAC knows them', list(text)),
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
 * `POST /oauth/introspect` (RFC 7662): what a token is good for now. Unknown, ended, another client's: all are `active: false` and no
 * more (section 2.2).
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
    const standing = await accessTokens.judge(token);
    if (standing === undefined || !mayKnow(client, standing.claims.clientID)) return undefined;
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

  /** Only for the client that has it: a resource server that asks about a bearer must never hear that a refresh token is good. */
  async function ofRefreshToken(token: string, client: Client): Promise<Omit<Introspection, 'active'> | undefined> {
    const presented = await sessions.rotation.presented(token);
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
        summary: 'Tells whether a token is good now, and for what (RFC 7662)',
        directory,
        limiter,
        formName: 'IntrospectionRequest',
        fields: tokenFields,
        responses: json(introspectionSchema),
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
