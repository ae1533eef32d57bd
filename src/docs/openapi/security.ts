/** Who must show what, as the descriptions say it. */
import { clientScopes } from '../../config/schema.ts';
import { needsIdentity } from '../../http/access.ts';
import type { Route } from '../../http/route.ts';

const meaning: Readonly<Record<(typeof clientScopes)[number], string>> = {
  openid: 'An id_token, and /oauth/userinfo',
  profile: 'The name',
  email: 'The e-mail address',
  groups: 'The groups',
  offline_access: 'A refresh token, as every login gets one that may have it',
};

const scopes = Object.fromEntries(clientScopes.map((name) => [name, meaning[name]]));
const token = 'An access token, or the token of a ServiceAccount';
const clientText = 'client_id and client_secret of an OAuth client';

export type Security = readonly Readonly<Record<string, readonly string[]>>[];

/** Undefined where it is as everywhere. A client may show its secret in the form too, and a public one has none. */
export function securityOf({ access }: Route): Security | undefined {
  if (needsIdentity(access)) return undefined;
  if (access.kind !== 'client') return [];
  return [...access.schemes.map((one) => ({ [one]: [] })), ...(access.schemes.includes('client') ? [{}] : [])];
}

/** For OpenAPI 3.1: what is shown everywhere, and what there is. */
export function security31(issuer: string): { readonly security: Security; readonly securitySchemes: object } {
  const flow = { tokenUrl: `${issuer}/oauth/token`, refreshUrl: `${issuer}/oauth/token`, scopes };
  const flows = { password: flow, authorizationCode: { authorizationUrl: `${issuer}/oauth/authorize`, ...flow } };
  return {
    security: [{ bearer: [] }, { oauth2: [] }],
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', description: token },
      oauth2: { type: 'oauth2', flows },
      client: { type: 'http', scheme: 'basic', description: clientText },
    },
  };
}

/** The same for Swagger 2.0, where a scheme has one flow, and a bearer is a header. */
export function security20(issuer: string): { readonly security: Security; readonly securityDefinitions: object } {
  const flow = { type: 'oauth2', tokenUrl: `${issuer}/oauth/token`, scopes };
  return {
    security: [{ bearer: [] }, { password: [] }, { authorizationCode: [] }],
    securityDefinitions: {
      bearer: { type: 'apiKey', in: 'header', name: 'Authorization', description: `"Bearer " and: ${token}` },
      password: { ...flow, flow: 'password' },
      authorizationCode: { ...flow, flow: 'accessCode', authorizationUrl: `${issuer}/oauth/authorize` },
      client: { type: 'basic', description: clientText },
    },
  };
}
