import { described, text } from '../../http/schema.ts';
import { grantScope } from '../scope.ts';
import { defineGrant, type Grant, type GrantParts } from './grant.ts';

/** RFC 6749 section 4.3. */
export function passwordGrant({ login }: GrantParts): Grant {
  return defineGrant({
    grantType: 'password',
    parameters: {
      username: described('The name of the user, or the e-mail address', text),
      password: described('The password of the user', text),
      scope: described('Words separated by spaces; "openid" adds an id_token', text.optional()),
    },
    async find({ fields: { username, password, ...fields }, client, context }) {
      const scope = grantScope(fields.scope, client.scopes);
      const verified = await login.verify({ username, password, client: client.name, context });
      return {
        subject: verified.account,
        spend: async () => ({ ...(await login.begin(verified, { client: client.name, scope, context })), scope }),
      };
    },
  });
}
