/**
 * Serves `POST /oauth/token`. All grants share these steps, so that no grant can omit a step:
 * 1. Read the form.
 * 2. Authenticate the client.
 * 3. Find the grant.
 * 4. Check that the client is allowed to use the grant.
 * 5. Read the audience.
 * 6. Let the grant find a candidate, which is a valid grant that has not been redeemed yet.
 * 7. Check that the subject of the candidate is allowed to get a token for the audience.
 * 8. Let the grant redeem the candidate.
 * 9. Check the subject again.
 * 10. Issue the tokens.
 *
 * Steps 6 to 8 are repeated if another request changed the session in the meantime.
 */
import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import { annotations } from '../../audit/annotations.ts';
import { kubernetesAudience } from '../../config/names.ts';
import { identityClaims, type Tokens } from '../../tokens/jwt.ts';
import { clientScopes, signingAlgorithms } from '../../config/schema.ts';
import { isOptional, type Shape } from '../../http/request/parameters.ts';
import { json } from '../../http/route.ts';
import { count, described, named, object, oneOf, text, type TypeOf } from '../../http/schema.ts';
import { sendJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { audienceOf, assertAudience, resourceParameter } from '../scope.ts';
import { retryIfChanged } from '../../tokens/sessions/session-store.ts';
import { clientIdentificationMethods } from '../client-authentication.ts';
import { clientRoute } from '../client-request.ts';
import { assertGrantAllowed, type Grant, type GrantResult } from '../grants/grant.ts';
import { refreshGrantType } from '../grants/refresh-token.ts';

/** RFC 6749 section 5.1, OpenID Connect Core section 3.1.3.3, RFC 8693 section 2.2.1. */
const tokenResponseSchema = named(
  'TokenResponse',
  object(
    {
      access_token: text,
      token_type: oneOf('Bearer'),
      expires_in: described('Seconds until the access token expires', count),
    },
    {
      refresh_token: described(`Present if the client has the grant ${refreshGrantType}; valid for one use`, text),
      scope: described('Granted scopes, separated by spaces; may be fewer than requested', text),
      id_token: described('Present if `openid` was granted', text),
      issued_token_type: described('Type of the access token, after a token exchange', text),
    },
  ),
);

/** Describes each parameter once, with the grants that use it. */
function fieldsOf(grants: readonly Grant[]): Shape {
  const all = grants.flatMap(({ grantType, parameters }) =>
    Object.entries(parameters).map(([name, schema]) => ({
      name,
      grant: `\`${grantType}\``,
      meaning: `${isOptional(schema) ? ' (optional)' : ''}: ${schema.description}`,
    })),
  );
  const describe = (uses: typeof all): string =>
    [...Map.groupBy(uses, ({ meaning }) => meaning)]
      .map(([meaning, same]) => same.map(({ grant }) => grant).join(', ') + meaning)
      .join('; ');
  return Object.fromEntries(
    [...Map.groupBy(all, ({ name }) => name)].map(([name, uses]) => [name, described(describe(uses), text)]),
  );
}

function responseTo(
  client: Client,
  result: GrantResult,
  audience: string,
  tokens: Tokens,
): TypeOf<typeof tokenResponseSchema> {
  const { session, subject, refreshToken, scope, nonce, issuedTokenType } = result;
  const { token, expiresIn } = tokens.issueAccess(session, subject, scope, audience);
  return {
    access_token: token,
    token_type: 'Bearer',
    ...(issuedTokenType === undefined ? {} : { issued_token_type: issuedTokenType }),
    ...(refreshToken !== undefined && client.grantTypes.includes(refreshGrantType)
      ? { refresh_token: refreshToken }
      : {}),
    expires_in: expiresIn,
    ...(scope === undefined ? {} : { scope }),
    // No id_token is issued while the password must be changed, because third parties would accept it.
    ...(scope?.split(' ').includes('openid') && subject.passwordChangeRequired !== true
      ? { id_token: tokens.issueIdentity(session, subject, { scope, nonce, alg: client.idTokenSignedResponseAlg }) }
      : {}),
  };
}

export function tokenEndpoint(options: {
  grants: readonly Grant[];
  directory: Directory;
  limiter: LoginLimiter;
  tokens: Tokens;
  issuer: () => string;
}): OAuthEndpoint {
  const { grants, directory, limiter, tokens, issuer } = options;
  const byType = new Map(grants.map((grant) => [grant.grantType, grant]));
  const path = '/oauth/token';

  return {
    routes: [
      {
        ...clientRoute({
          path,
          summary: 'Exchange credentials for an access token',
          description:
            'Serves grants of RFC 6749, the device grant (RFC 8628) and token exchange (RFC 8693), if the ' +
            'configuration of the client lists them. A refresh token is valid for one use. If the response to a ' +
            'refresh is lost, repeat the request within `refreshGrace` (10 s by default). A later reuse revokes the ' +
            'session, as does the reuse of an authorization code. The device grant returns `authorization_pending` ' +
            'until the user decides. Too many wrong passwords or secrets return 429 with `Retry-After`.',
          directory,
          limiter,
          mayBePublic: true,
          formName: 'TokenRequest',
          fields: {
            grant_type: described('Grant type, which determines the other parameters', oneOf(...byType.keys())),
            audience: described(
              `Audience of the token: the issuer (the default), or \`${kubernetesAudience}\` for kube-apiserver`,
              text.optional(),
            ),
            resource: resourceParameter,
          },
          furtherFields: fieldsOf(grants),
          responses: json(tokenResponseSchema, 'The tokens'),
          async handler({ form, fields, client, context, res }) {
            const grant = byType.get(fields.grant_type) as Grant;
            context.annotate(annotations.grantType, grant.grantType);
            assertGrantAllowed(client, grant.grantType);
            const audience = audienceOf(fields, client, issuer());
            const result = await retryIfChanged(async (isRetry) => {
              const candidate = await grant.find({ form, client, context, audience, isRetry });
              assertAudience(candidate.subject, audience, issuer());
              return await candidate.redeem();
            });
            assertAudience(result.subject, audience, issuer());
            context.audit?.identify(result.subject);
            context.annotate(annotations.session, result.session.metadata.name);
            sendJSON(res, responseTo(client, result, audience, tokens), uncached);
          },
        }),
        issuesTokens: true,
      },
    ],
    metadata: (at) => ({
      token_endpoint: at(path),
      token_endpoint_auth_methods_supported: clientIdentificationMethods,
      grant_types_supported: [...byType.keys()],
      scopes_supported: clientScopes,
      subject_types_supported: ['public'],
      // Libraries also verify access tokens with the algorithms in this list.
      id_token_signing_alg_values_supported: signingAlgorithms,
      claims_supported: identityClaims,
    }),
  };
}
