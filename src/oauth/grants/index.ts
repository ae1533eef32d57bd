import type { Grant, GrantParts } from './grant.ts';
import { passwordGrant } from './password.ts';
import { refreshTokenGrant } from './refresh-token.ts';

/** Every grant that is served: one file and one line each. */
export const createGrants = (parts: GrantParts): readonly Grant[] => [passwordGrant(parts), refreshTokenGrant(parts)];
