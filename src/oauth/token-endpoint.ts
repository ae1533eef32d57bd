/**
 * `POST /oauth/token`. The steps are shared by all grants, so none can forget one:
 * 1 read the form, 2 authenticate the client, 3 find the grant, 4 see that the client may use it, 5 let the grant judge,
 * 6 make the tokens.
 */
import type { Directory } from '../accounts/directory.ts';
import type { Tokens } from '../auth/tokens.ts';
import { OAuthError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import { authenticateClient } from './client-authentication.ts';
import { readForm, required } from './form.ts';
import type { Grant } from './grants/grant.ts';

export function tokenRoute(options: { grants: readonly Grant[]; directory: Directory; tokens: Tokens }): Route {
  const { grants, directory, tokens } = options;
  const byType = new Map(grants.map((grant) => [grant.grantType, grant]));
  return {
    method: 'post',
    path: '/oauth/token',
    summary: 'Exchanges credentials for an access token (RFC 6749)',
    open: true,
    handler: async (req, res, context) => {
      if (context.query.size > 0)
        throw new OAuthError(
          'invalid_request',
          'parameters belong in the body: what stands in the URL is logged on its way',
        );
      const form = await readForm(req);
      const client = await authenticateClient(req, form, directory);
      const grantType = required(form, 'grant_type');
      const grant = byType.get(grantType);
      if (grant === undefined)
        throw new OAuthError('unsupported_grant_type', `grant_type must be one of ${[...byType.keys()].join(', ')}`);
      if (!client.grantTypes.includes(grantType))
        throw new OAuthError('unauthorized_client', `the client "${client.name}" may not use the grant ${grantType}`);
      const { session, account, refreshToken, scope } = await grant.grant({ form, client, context });
      const { token, expiresIn } = tokens.issueAccess(session, account, scope);
      const body = {
        access_token: token,
        token_type: 'Bearer',
        ...(client.grantTypes.includes('refresh_token') ? { refresh_token: refreshToken } : {}),
        expires_in: expiresIn,
        ...(scope === undefined ? {} : { scope }),
        ...(scope?.split(' ').includes('openid') ? { id_token: tokens.issueIdentity(session, account, scope) } : {}),
      };
      res.setHeader('Content-Type', 'application/json');
      res.setHeader('Cache-Control', 'no-store');
      res.setHeader('Pragma', 'no-cache');
      res.end(`${JSON.stringify(body)}\n`);
    },
  };
}
