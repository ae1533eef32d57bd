import { programScope, programScopeParameter } from '../scope.ts';
import { defineGrant, type Grant, type GrantParts, type GrantResult } from './grant.ts';

/**
 * Implements RFC 6749 section 4.4: the client acts on its own behalf, as `platform:client:<name>` with its configured
 * groups.
 */
export function clientCredentialsGrant({ sessions }: GrantParts): Grant {
  return defineGrant({
    grantType: 'client_credentials',
    parameters: { scope: programScopeParameter },
    async find({ fields, client, context }) {
      const scope = programScope(fields.scope, client.scopes);
      const { subject } = client;
      async function redeem(): Promise<GrantResult> {
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
      return { subject, redeem };
    },
  });
}
