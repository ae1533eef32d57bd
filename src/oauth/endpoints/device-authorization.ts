/** `POST /oauth/device_authorization` (RFC 8628 section 3.1): a device that has no browser asks to be let in by somebody who has one. */
import type { Directory } from '../../accounts/directory/directory.ts';
import type { LoginLimiter } from '../../accounts/logins/limit.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import { json } from '../../http/route.ts';
import { count, described, named, object, text, type TypeOf } from '../../http/schema.ts';
import { answerJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { clientRoute, type ClientRequest } from '../client-request.ts';
import { devicePath } from './device.ts';
import { deviceCodeLife, deviceGrantType, pollInterval } from '../grants/device-code.ts';
import { demandGrant } from '../grants/grant.ts';
import { refreshGrantType } from '../grants/refresh-token.ts';
import { grantScope } from '../scope.ts';
import { newUserCode, shown } from '../user-code.ts';

/** RFC 8628 section 3.2. */
const deviceAuthorizationSchema = named(
  'DeviceAuthorization',
  object({
    device_code: text,
    user_code: described('What the user types in', text),
    verification_uri: described('Where', text),
    verification_uri_complete: text,
    expires_in: described('Seconds', count),
    interval: described('Seconds between two requests of the token', count),
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
  const summary = 'Asks that somebody let a device in (RFC 8628)';

  async function begin({
    form,
    client,
    context: { sourceIP },
  }: ClientRequest): Promise<[code: string, userCode: string]> {
    const scope = grantScope(form.get('scope'), client.scopes);
    const spec = { clientID: client.name, ...(scope === undefined ? {} : { scope }) };
    const refreshable = client.grantTypes.includes(refreshGrantType);
    for (;;) {
      const userCode = newUserCode();
      const code = await sessions.devices.create(spec, { userCode, sourceIP, life: deviceCodeLife, refreshable });
      if (code !== undefined) return [code, userCode];
    }
  }

  const route = {
    path,
    summary,
    directory,
    limiter,
    mayBePublic: true,
    formName: 'DeviceAuthorizationRequest',
    fields: {},
    optional: { scope: described('Words separated by spaces', text) },
    answers: json(deviceAuthorizationSchema),
  };
  return {
    routes: [
      clientRoute(route, async (request) => {
        const { client, res } = request;
        demandGrant(client, deviceGrantType);
        const [code, userCode] = await begin(request);
        const verificationURI = `${issuer()}${devicePath}`;
        const body: TypeOf<typeof deviceAuthorizationSchema> = {
          device_code: code,
          user_code: shown(userCode),
          verification_uri: verificationURI,
          verification_uri_complete: `${verificationURI}?user_code=${shown(userCode)}`,
          expires_in: deviceCodeLife / 1_000,
          interval: pollInterval / 1_000,
        };
        answerJSON(res, body, uncached);
      }),
    ],
    metadata: (at) => ({ device_authorization_endpoint: at(path) }),
  };
}
