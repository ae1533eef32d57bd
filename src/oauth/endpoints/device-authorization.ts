/**
 * Serves `POST /oauth/device_authorization` (RFC 8628 section 3.1), which starts the login of a device without a
 * browser.
 */
import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import { retryIfChanged } from '../../tokens/sessions/session-store.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { json, type RequestContext } from '../../http/route.ts';
import { count, described, named, object, text, type TypeOf } from '../../http/schema.ts';
import { sendJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { clientRoute } from '../client-request.ts';
import { devicePath } from './device.ts';
import { deviceCodeLife, deviceGrantType, pollInterval } from '../grants/device-code.ts';
import { assertGrantAllowed } from '../grants/grant.ts';
import { refreshGrantType } from '../grants/refresh-token.ts';
import { grantScope, scopeParameter } from '../scope.ts';
import { newUserCode, shown } from '../user-code.ts';

/** RFC 8628 section 3.2. */
const deviceAuthorizationSchema = named(
  'DeviceAuthorization',
  object({
    device_code: described('Code with which the device requests its token', text),
    user_code: described('Code that the user enters', text),
    verification_uri: described('Page on which the user enters the code', text),
    verification_uri_complete: described('The same page with the code filled in', text),
    expires_in: described('Seconds for which both codes are valid', count),
    interval: described('Minimum seconds between two token requests of the device', count),
  }),
);

export function deviceAuthorizationEndpoint({
  directory,
  limiter,
  sessions,
  issuer,
}: {
  readonly directory: Directory;
  readonly limiter: LoginLimiter;
  readonly sessions: Sessions;
  readonly issuer: () => string;
}): OAuthEndpoint {
  const path = '/oauth/device_authorization';

  async function start(
    client: Client,
    requested: string | undefined,
    { sourceIP, signal }: RequestContext,
  ): Promise<[code: string, userCode: string]> {
    const scope = grantScope(requested, client.scopes);
    const spec = { clientID: client.name, ...(scope === undefined ? {} : { scope }) };
    const refreshable = client.grantTypes.includes(refreshGrantType);
    return await retryIfChanged(async () => {
      signal.throwIfAborted();
      const userCode = newUserCode();
      const code = await sessions.devices.create(spec, { userCode, sourceIP, life: deviceCodeLife, refreshable });
      return code === undefined ? 'changed' : [code, userCode];
    });
  }

  return {
    routes: [
      clientRoute({
        path,
        summary: 'Start the login of a device',
        description:
          'Returns the two codes of the device grant (RFC 8628). The configuration of the client must list this grant. The user opens `verification_uri` in any browser and authorizes the device; meanwhile the device polls `POST /oauth/token`.',
        directory,
        limiter,
        mayBePublic: true,
        formName: 'DeviceAuthorizationRequest',
        fields: { scope: scopeParameter },
        responses: json(deviceAuthorizationSchema, 'The codes for the device and for the user'),
        async handler({ fields, client, context, res }) {
          assertGrantAllowed(client, deviceGrantType);
          const [code, userCode] = await start(client, fields.scope, context);
          const verificationURI = `${issuer()}${devicePath}`;
          const body: TypeOf<typeof deviceAuthorizationSchema> = {
            device_code: code,
            user_code: shown(userCode),
            verification_uri: verificationURI,
            verification_uri_complete: `${verificationURI}?user_code=${shown(userCode)}`,
            expires_in: deviceCodeLife / 1_000,
            interval: pollInterval / 1_000,
          };
          sendJSON(res, body, uncached);
        },
      }),
    ],
    metadata: (at) => ({ device_authorization_endpoint: at(path) }),
  };
}
