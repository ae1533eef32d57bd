import type { Response } from 'express';
import { noSuchPath } from '../../runtime/errors.ts';
import { anonymous } from '../../http/access.ts';
import { inPath, json, type ParameterDescription, type Handler, type Route } from '../../http/route.ts';
import { described, flag, list, named, object, text } from '../../http/schema.ts';
import { answerJSON, cacheable, type OAuthEndpoint } from '../json-response.ts';

const url = described('Below the issuer', text.meta({ format: 'uri' }));
/** RFC 8414 section 2, OpenID Connect Discovery section 3, OpenID Connect RP-Initiated Logout section 2.1, RFC 8628 section 4, RFC 9207 section 3. */
const metadataSchema = named(
  'ProviderMetadata',
  object({
    issuer: text.meta({ format: 'uri' }),
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

const names = ['openid-configuration', 'oauth-authorization-server'];
/** RFC 8414 section 3, OpenID Connect Discovery section 4; under /oauth for clients that were given that as their base. */
const paths = ['', '/oauth'].flatMap((base) => names.map((name) => `${base}/.well-known/${name}`));

/** The metadata of the server: what the endpoints say of themselves, below the issuer that is configured and never below `Host`. */
export function metadataRoutes(endpoints: readonly OAuthEndpoint[], issuer: () => string): Route[] {
  const answer = (res: Response): void => {
    const base = issuer();
    const members = endpoints.map((endpoint) => endpoint.metadata((one) => `${base}${one}`));
    answerJSON(res, Object.assign({ issuer: base }, ...members) as object, cacheable);
  };
  return [
    ...paths.map((path) => route(path, [], (_req, res) => answer(res))),
    // RFC 8414 section 3.1: the path of an issuer that has one stands behind the name.
    ...names.map((name) =>
      route(`/.well-known/${name}/*path`, [inPath('path', 'That of the issuer')], (_req, res, { info }) => {
        if (info.path !== `/.well-known/${name}${new URL(issuer()).pathname}`) throw noSuchPath();
        answer(res);
      }),
    ),
  ];
}

const route = (path: string, parameters: readonly ParameterDescription[], handler: Handler): Route => ({
  method: 'get',
  path,
  summary: 'What this authorization server offers (RFC 8414, OpenID Connect Discovery)',
  access: anonymous,
  parameters,
  answers: json(metadataSchema),
  handler,
});
