import { authorizationCodeGrant } from './authorization-code.ts';
import { clientCredentialsGrant } from './client-credentials.ts';
import { deviceCodeGrant } from './device-code.ts';
import type { Grant, GrantParts } from './grant.ts';
import { passwordGrant } from './password.ts';
import { refreshTokenGrant } from './refresh-token.ts';
import { tokenExchangeGrant } from './token-exchange.ts';

/** Creates all grants. A new grant needs a file, a line here, and its grant type in config/schema.ts. */
export const createGrants = (parts: GrantParts): readonly Grant[] => [
  passwordGrant(parts),
  refreshTokenGrant(parts),
  authorizationCodeGrant(parts),
  clientCredentialsGrant(parts),
  deviceCodeGrant(parts),
  tokenExchangeGrant(parts),
];
