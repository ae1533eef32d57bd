import type { Request, Response } from 'express';
import type { AccessTokens, ValidToken } from '../../auth/authenticators/access-tokens.ts';
import {
  malformedToken,
  onlyBearerCredentials,
  unsupportedCredentials,
} from '../../auth/authenticators/bearer-credentials.ts';
import { identityOf } from '../../tokens/jwt.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { defineRoute } from '../../http/define-route.ts';
import type { RequestBody } from '../../http/request/json-body.ts';
import { json } from '../../http/route.ts';
import { described, flag, list, named, object, text } from '../../http/schema.ts';
import { sendJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { formBody, type Form } from '../form.ts';
import { oauthParameters } from '../parameters.ts';

/** OpenID Connect Core section 5.3.2. */
const userinfoSchema = named(
  'UserInfo',
  object(
    { sub: described('UID of the user', text) },
    {
      preferred_username: described('Username, with the scope `profile`', text),
      name: described('Display name, with the scope `profile`', text),
      email: described('E-mail address, with the scope `email`', text),
      email_verified: described('`true`, with the scope `email`', flag),
      groups: described('Groups, with the scope `groups`', list(text)),
    },
  ),
);

const usage = 'send "Authorization: Bearer <token>"';

const noToken = (problem = 'the access token is missing'): OAuthError =>
  // RFC 6750 section 3.1: the challenge for a request without a token contains no error code.
  new OAuthError('invalid_request', `${problem}: ${usage}`, {
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer realm="platform"' },
  });

function tokenOf(req: Request): string {
  const credentials = onlyBearerCredentials(req);
  if (credentials === undefined) throw noToken(unsupportedCredentials(req.headers.authorization));
  const problem = malformedToken(credentials);
  if (problem !== undefined) throw new OAuthError('invalid_token', `${problem}: ${usage}`);
  return credentials;
}

const form = formBody(oauthParameters({}), 'UserInfoRequest');
/** An optional form whose fields are ignored, except that an access token is rejected. */
const optionalForm: RequestBody<Form | undefined> = {
  description: { ...form.description, required: false },
  read: async (req, context) => (req.headers['content-type'] === undefined ? undefined : form.read(req, context)),
};

/**
 * Serves `GET` and `POST /oauth/userinfo` (OpenID Connect Core section 5.3), which return the claims about the user of
 * an access token with the scope `openid`.
 */
export function userinfoEndpoint(accessTokens: AccessTokens): OAuthEndpoint {
  const path = '/oauth/userinfo';

  async function authenticate(req: Request): Promise<ValidToken> {
    const standing = await accessTokens.validate(tokenOf(req));
    if (standing === undefined)
      throw new OAuthError('invalid_token', 'the access token is unknown, expired or revoked');
    return standing;
  }

  const common = {
    path,
    summary: 'Get the user of the access token',
    description:
      'Returns the claims that the scopes of the access token allow (OpenID Connect Core section 5.3). The token ' +
      'must be in the `Authorization` header. A token without the scope `openid` gets 403 `insufficient_scope`.',
    access: { kind: 'client', schemes: ['bearer'] },
    responses: json(userinfoSchema, 'The claims about the user'),
    errors: [403],
    async handler({ req, res }: { readonly req: Request; readonly res: Response }): Promise<void> {
      const { claims, subject } = await authenticate(req);
      const scopes = new Set(claims.scope?.split(' '));
      if (!scopes.has('openid'))
        throw new OAuthError('insufficient_scope', 'the access token needs the scope "openid"');
      sendJSON(res, { sub: subject.uid, ...identityOf(subject, scopes) }, uncached);
    },
  } as const;
  return {
    routes: [defineRoute({ ...common, method: 'get' }), defineRoute({ ...common, method: 'post', body: optionalForm })],
    metadata: (at) => ({ userinfo_endpoint: at(path) }),
  };
}
