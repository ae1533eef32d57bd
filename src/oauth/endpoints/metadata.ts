import type { Response } from 'express';
import { pathNotFound } from '../../runtime/errors.ts';
import { anonymous } from '../../http/access.ts';
import { defineRoute } from '../../http/define-route.ts';
import { json, type Route } from '../../http/route.ts';
import { described, flag, list, named, object, text } from '../../http/schema.ts';
import { sendJSON, cacheable, type OAuthEndpoint } from '../json-response.ts';

const url = described('URL below the issuer', text.meta({ format: 'uri' }));
/**
 * RFC 8414 section 2, OpenID Connect Discovery section 3, OpenID Connect RP-Initiated Logout section 2.1, RFC 8628
 * section 4, RFC 9207 section 3.
 */
const metadataSchema = named(
  'ProviderMetadata',
  object({
    issuer: described('Issuer of the tokens', text.meta({ format: 'uri' })),
    ...Object.fromEntries(
      [
        'authorization_endpoint',
        'token_endpoint',
        'device_authorization_endpoint',
        'end_session_endpoint',
        'revocation_endpoint',
        'introspection_endpoint',
        'userinfo_endpoint',
        'jwks_uri',
      ].map((name) => [name, url]),
    ),
    ...Object.fromEntries(
      [
        'response_types_supported',
        'response_modes_supported',
        'grant_types_supported',
        'code_challenge_methods_supported',
        'scopes_supported',
        'subject_types_supported',
        'id_token_signing_alg_values_supported',
        'claims_supported',
        'prompt_values_supported',
        'token_endpoint_auth_methods_supported',
        'revocation_endpoint_auth_methods_supported',
        'introspection_endpoint_auth_methods_supported',
      ].map((name) => [name, list(text)]),
    ),
    ...Object.fromEntries(
      [
        'authorization_response_iss_parameter_supported',
        'request_parameter_supported',
        'request_uri_parameter_supported',
        'claims_parameter_supported',
      ].map((name) => [name, flag]),
    ),
  }),
);

const names = ['openid-configuration', 'oauth-authorization-server'] as const;
/**
 * RFC 8414 section 3, OpenID Connect Discovery section 4. The metadata is also served below /oauth, for clients that
 * use that path as their base URL.
 */
const paths = ['', '/oauth'].flatMap((base) => names.map((name) => `${base}/.well-known/${name}`));

/** Server metadata. All URLs are below the configured issuer and never depend on the `Host` header. */
export function metadataRoutes(endpoints: readonly OAuthEndpoint[], issuer: () => string): Route[] {
  const send = (res: Response): void => {
    const base = issuer();
    const members = endpoints.map((endpoint) => endpoint.metadata((one) => `${base}${one}`));
    sendJSON(res, Object.assign({ issuer: base }, ...members) as object, cacheable);
  };
  const common = {
    method: 'get',
    summary: 'Get the authorization server metadata',
    description:
      'Returns the endpoints and features of this server (RFC 8414, OpenID Connect Discovery 1.0). Clients can cache the response for five minutes.',
    access: anonymous,
    responses: json(metadataSchema, 'The metadata'),
  } as const;
  return [
    ...paths.map((path) => defineRoute({ ...common, path, handler: ({ res }) => send(res) })),
    // RFC 8414 section 3.1: the path of the issuer follows the well-known URI suffix.
    ...names.map((name) =>
      defineRoute({
        ...common,
        path: `/.well-known/${name}/*path`,
        description: 'Serves the metadata if the issuer has this path (RFC 8414 section 3.1). Any other path gets 404.',
        pathParameters: { path: 'Path of the issuer, if it has one' },
        handler({ res, context }) {
          if (context.info.path !== `/.well-known/${name}${new URL(issuer()).pathname}`) throw pathNotFound();
          send(res);
        },
      }),
    ),
  ];
}
