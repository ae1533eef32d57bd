/** Security requirements and schemes of the descriptions. */
import { clientScopes } from '../../config/schema.ts';
import { needsIdentity } from '../../http/access.ts';
import type { Route } from '../../http/route.ts';

const meaning: Readonly<Record<(typeof clientScopes)[number], string>> = {
  openid: 'Issue an id_token, and allow /oauth/userinfo',
  profile: 'Include the username and the display name',
  email: 'Include the e-mail address',
  groups: 'Include the groups',
  offline_access: 'No effect: clients with the grant refresh_token always get a refresh token',
};

const scopes = Object.fromEntries(clientScopes.map((name) => [name, meaning[name]]));
const token = 'access token of this server, or a ServiceAccount token';
const clientText = 'Name and secret of an OAuth client';

export type Security = readonly Readonly<Record<string, readonly string[]>>[];

/**
 * Returns the security requirement of a route; undefined for the default. The empty requirement covers clients that
 * send their secret in the form, and public clients.
 */
export function securityOf({ access }: Route): Security | undefined {
  if (needsIdentity(access)) return undefined;
  if (access.kind !== 'client') return [];
  return [...access.schemes.map((one) => ({ [one]: [] })), ...(access.schemes.includes('client') ? [{}] : [])];
}

/** Returns the default requirement and the schemes for OpenAPI 3.1. */
export function security31(issuer: string): { readonly security: Security; readonly securitySchemes: object } {
  const flow = { tokenUrl: `${issuer}/oauth/token`, refreshUrl: `${issuer}/oauth/token`, scopes };
  const flows = { password: flow, authorizationCode: { authorizationUrl: `${issuer}/oauth/authorize`, ...flow } };
  return {
    security: [{ bearer: [] }, { oauth2: [] }],
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', description: `An ${token}` },
      oauth2: { type: 'oauth2', flows },
      client: { type: 'http', scheme: 'basic', description: clientText },
    },
  };
}

/**
 * Returns the default requirement and the schemes for Swagger 2.0. In Swagger 2.0, a scheme has only one flow, and a
 * bearer token is described as a header.
 */
export function security20(issuer: string): { readonly security: Security; readonly securityDefinitions: object } {
  const flow = { type: 'oauth2', tokenUrl: `${issuer}/oauth/token`, scopes };
  return {
    security: [{ bearer: [] }, { password: [] }, { authorizationCode: [] }],
    securityDefinitions: {
      bearer: {
        type: 'apiKey',
        in: 'header',
        name: 'Authorization',
        description: `"Bearer " followed by an ${token}`,
      },
      password: { ...flow, flow: 'password' },
      authorizationCode: { ...flow, flow: 'accessCode', authorizationUrl: `${issuer}/oauth/authorize` },
      client: { type: 'basic', description: clientText },
    },
  };
}
