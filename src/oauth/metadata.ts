import type { Response } from 'express';
import { noSuchPath } from '../errors.ts';
import type { Handler, Route } from '../http/route.ts';
import { answerJSON, cacheable } from './answer.ts';
import type { Endpoint } from './endpoint.ts';

const names = ['openid-configuration', 'oauth-authorization-server'];
/** RFC 8414 section 3, OpenID Connect Discovery section 4; under /oauth for clients that were given that as their base. */
const paths = ['', '/oauth'].flatMap((base) => names.map((name) => `${base}/.well-known/${name}`));

/** The metadata of the server: what the endpoints say of themselves, below the issuer that is configured and never below `Host`. */
export function metadataRoutes(endpoints: readonly Endpoint[], issuer: () => string): Route[] {
  const answer = (res: Response): void => {
    const base = issuer();
    const members = endpoints.map((endpoint) => endpoint.metadata((one) => `${base}${one}`));
    answerJSON(res, Object.assign({ issuer: base }, ...members) as object, cacheable);
  };
  return [
    ...paths.map((path) => route(path, (_req, res) => answer(res))),
    // RFC 8414 section 3.1: the path of an issuer that has one stands behind the name.
    ...names.map((name) =>
      route(`/.well-known/${name}/*path`, (_req, res, { info }) => {
        if (info.path !== `/.well-known/${name}${new URL(issuer()).pathname}`) throw noSuchPath();
        answer(res);
      }),
    ),
  ];
}

const route = (path: string, handler: Handler): Route => ({
  method: 'get',
  path,
  summary: 'What this authorization server offers (RFC 8414, OpenID Connect Discovery)',
  open: true,
  handler,
});
