import type { Route } from '../http/route.ts';
import { answerJSON, cacheable } from './answer.ts';
import type { Endpoint } from './endpoint.ts';

/** RFC 8414 section 3, OpenID Connect Discovery section 4; under /oauth for clients that were given that as their base. */
const paths = ['', '/oauth'].flatMap((base) =>
  ['openid-configuration', 'oauth-authorization-server'].map((name) => `${base}/.well-known/${name}`),
);

/** The metadata of the server: what the endpoints say of themselves, below the issuer that is configured and never below `Host`. */
export function metadataRoutes(endpoints: readonly Endpoint[], issuer: () => string): Route[] {
  return paths.map((path) => ({
    method: 'get',
    path,
    summary: 'What this authorization server offers (RFC 8414, OpenID Connect Discovery)',
    open: true,
    handler: (_req, res) => {
      const base = issuer();
      const members = endpoints.map((endpoint) => endpoint.metadata((one) => `${base}${one}`));
      answerJSON(res, Object.assign({ issuer: base }, ...members) as object, cacheable);
    },
  }));
}
