import { required } from '../form.ts';
import { grantScope } from '../scope.ts';
import type { Grant, GrantParts } from './grant.ts';

/** RFC 6749 section 4.3. */
export function passwordGrant({ login }: GrantParts): Grant {
  return {
    grantType: 'password',
    parameters: [
      { name: 'username', required: true, description: 'The name of the user, or the e-mail address' },
      { name: 'password', required: true, description: 'The password of the user' },
      { name: 'scope', required: false, description: 'Words separated by spaces; "openid" adds an id_token' },
    ],
    async find({ form, client, context }) {
      const username = required(form, 'username');
      const password = required(form, 'password');
      const scope = grantScope(form.get('scope'), client.scopes);
      const verified = await login.verify({ username, password, client: client.name, context });
      return {
        subject: verified.account,
        spend: async () => ({ ...(await login.begin(verified, { client: client.name, scope, context })), scope }),
      };
    },
  };
}
