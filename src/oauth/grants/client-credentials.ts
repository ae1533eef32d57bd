import { programScope } from '../scope.ts';
import type { Grant, GrantParts, GrantResult } from './grant.ts';

/** RFC 6749 section 4.4: the client acts for itself, as `platform:client:<name>` with its configured groups. */
export function clientCredentialsGrant({ sessions }: GrantParts): Grant {
  return {
    grantType: 'client_credentials',
    parameters: [{ name: 'scope', required: false, description: 'Words separated by spaces' }],
    async find({ form, client, context }) {
      const scope = programScope(form.get('scope'), client.scopes);
      const { subject } = client;
      async function spend(): Promise<GrantResult> {
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
      }
      return { subject, spend };
    },
  };
}
