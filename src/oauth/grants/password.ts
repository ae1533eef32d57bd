import { described, text } from '../../http/schema.ts';
import { grantScope, scopeParameter } from '../scope.ts';
import { defineGrant, type Grant, type GrantParts } from './grant.ts';

/** Implements RFC 6749 section 4.3. */
export function passwordGrant({ login }: GrantParts): Grant {
  return defineGrant({
    grantType: 'password',
    parameters: {
      username: described('Username or e-mail address', text),
      password: described('Password of the user', text),
      scope: scopeParameter,
    },
    async find({ fields: { username, password, ...fields }, client, context }) {
      const scope = grantScope(fields.scope, client.scopes);
      const verified = await login.verify({ username, password, client: client.name, context });
      return {
        subject: verified.account,
        redeem: async () => ({
          ...(await login.startSession(verified, { client: client.name, scope, context })),
          scope,
        }),
      };
    },
  });
}
