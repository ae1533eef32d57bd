import { programScope } from '../scope.ts';
import type { Grant, GrantParts } from './grant.ts';

/** RFC 6749 section 4.4: the client acts for itself, as `platform:client:<name>` with the groups that are configured for it. */
export function clientCredentialsGrant({ sessions }: GrantParts): Grant {
  return {
    grantType: 'client_credentials',
    parameters: [{ name: 'scope', required: false, description: 'Words separated by spaces' }],
    async grant({ form, client, context }) {
      const scope = programScope(form.get('scope'), client.scopes);
      const { subject } = client;
      const session = await sessions.createFixed({
        subjectKind: 'Client',
        userName: subject.username,
        userUID: subject.uid,
        clientID: client.name,
        ...(scope === undefined ? {} : { scope }),
      });
      context.log.info('client login', {
        auditID: context.auditID,
        client: client.name,
        sid: session.metadata.name,
        sourceIP: context.sourceIP,
      });
      return { session, subject, scope };
    },
  };
}
