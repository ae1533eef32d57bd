import type { Request } from 'express';
import type { AccessTokens, StandingToken } from '../../auth/authenticators/access-tokens.ts';
import { bearerCredentials } from '../../auth/authenticators/bearer-credentials.ts';
import { identityOf } from '../../tokens/jwt.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { json, type Handler } from '../../http/route.ts';
import { flag, list, named, object, text } from '../../http/schema.ts';
import { answerJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { formBody, readForm } from '../form.ts';

/** OpenID Connect Core section 5.3.2: what the scope of the token lets tell. */
const userinfoSchema = named(
  'UserInfo',
  object(
    { sub: text },
    { preferred_username: text, name: text, email: text, email_verified: flag, groups: list(text) },
  ),
);

const noToken = (): OAuthError =>
  // RFC 6750 section 3.1: who sent no token is told no error in the challenge.
  new OAuthError('invalid_request', 'an access token is missing: send it in the header "Authorization: Bearer TOKEN"', {
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer realm="platform"' },
  });

/** `GET` and `POST /oauth/userinfo` (OpenID Connect Core section 5.3): the person of an access token whose scope has `openid`. */
export function userinfoEndpoint(accessTokens: AccessTokens): OAuthEndpoint {
  const path = '/oauth/userinfo';

  async function judge(req: Request): Promise<StandingToken> {
    const token = bearerCredentials(req.headers.authorization);
    if (token === undefined) throw noToken();
    const standing = await accessTokens.judge(token);
    if (standing === undefined)
      throw new OAuthError('invalid_token', 'the access token is unknown, expired or revoked');
    return standing;
  }

  const handler: Handler = async (req, res, { arrival }) => {
    // A token in the form is refused there.
    if (req.headers['content-type'] !== undefined) await readForm(req, arrival);
    const { claims, subject } = await judge(req);
    const scopes = new Set(claims.scope?.split(' '));
    if (!scopes.has('openid'))
      throw new OAuthError('insufficient_scope', 'the token was not given for the scope "openid"');
    answerJSON(res, { sub: subject.uid, ...identityOf(subject, scopes) }, uncached);
  };

  return {
    routes: (['get', 'post'] as const).map((method) => ({
      method,
      path,
      summary: 'Who the access token speaks of (OpenID Connect Core 5.3)',
      access: { kind: 'client', schemes: ['bearer'] } as const,
      ...(method === 'post' ? { body: { ...formBody({}, {}, 'UserInfoRequest'), required: false } } : {}),
      answers: json(userinfoSchema),
      refusals: [403],
      handler,
    })),
    metadata: (at) => ({ userinfo_endpoint: at(path) }),
  };
}
