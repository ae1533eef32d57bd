import { authorizationCodeGrant } from './authorization-code.ts';
import { clientCredentialsGrant } from './client-credentials.ts';
import { deviceCodeGrant } from './device-code.ts';
import type { Grant, GrantParts } from './grant.ts';
import { passwordGrant } from './password.ts';
import { refreshTokenGrant } from './refresh-token.ts';
import { tokenExchangeGrant } from './token-exchange.ts';

/** Creates all grants. To add a grant, create a file, add a line here, and add its grant type to config/schema.ts. */
export const createGrants = (parts: GrantParts): readonly Grant[] => [
  passwordGrant(parts),
  refreshTokenGrant(parts),
  authorizationCodeGrant(parts),
  clientCredentialsGrant(parts),
  deviceCodeGrant(parts),
  tokenExchangeGrant(parts),
];
