import type { SigningKeys } from '../../tokens/signing-keys.ts';
import { anonymous } from '../../http/access.ts';
import { defineRoute } from '../../http/define-route.ts';
import { described, list, named, object, oneOf, open, text, type TypeOf } from '../../http/schema.ts';
import { sendJSON, cacheable, type OAuthEndpoint } from '../json-response.ts';

const jwkSet = 'application/jwk-set+json';

const keySetSchema = named(
  'JWKS',
  object({
    keys: list(
      named(
        'JWK',
        open(
          object(
            {
              kid: described('Identifier of the key', text),
              alg: described('Signature algorithm', text),
              use: oneOf('sig'),
            },
            { kty: text, crv: text, x: text, y: text, n: text, e: text },
          ),
        ),
      ),
    ),
  }),
);

/**
 * Serves `GET /oauth/keys`, which returns the public keys that verify the tokens of this server (RFC 7517 section 5).
 */
export function keysEndpoint(keys: Pick<SigningKeys, 'published'>): OAuthEndpoint {
  const path = '/oauth/keys';
  return {
    routes: [
      defineRoute({
        method: 'get',
        path,
        summary: 'List the public signing keys',
        description:
          'Returns the JWK Set (RFC 7517) that verifies the tokens of this server. Clients can cache it for five minutes: each new key is published more than five minutes before it signs.',
        access: anonymous,
        responses: { 200: { description: 'The JWK Set', content: { [jwkSet]: keySetSchema } } },
        handler: ({ res }) =>
          sendJSON(res, { keys: keys.published() } satisfies TypeOf<typeof keySetSchema>, {
            ...cacheable,
            'Content-Type': jwkSet,
          }),
      }),
    ],
    metadata: (at) => ({ jwks_uri: at(path) }),
  };
}
