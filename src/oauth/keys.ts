import type { SigningKeys } from '../accounts/signing-keys.ts';
import { answerJSON, cacheable } from './answer.ts';
import type { Endpoint } from './endpoint.ts';

/** `GET /oauth/keys`: the public keys with which our tokens are verified (RFC 7517 section 5). */
export function keysEndpoint(keys: Pick<SigningKeys, 'published'>): Endpoint {
  const path = '/oauth/keys';
  return {
    routes: [
      {
        method: 'get',
        path,
        summary: 'The public keys that verify tokens (RFC 7517)',
        open: true,
        handler: (_req, res) =>
          answerJSON(res, { keys: keys.published() }, { ...cacheable, 'Content-Type': 'application/jwk-set+json' }),
      },
    ],
    metadata: (at) => ({ jwks_uri: at(path) }),
  };
}
