/** Builds the key stores and the services that sign and verify tokens. */
import type { ClusterParts } from '../cluster/build.ts';
import { Tokens } from './jwt.ts';
import { KeyRotation } from './key-rotation.ts';
import { RefreshTokens } from './refresh-tokens.ts';
import { SigningKeys } from './signing-keys.ts';

export interface TokenParts {
  readonly refreshTokens: RefreshTokens;
  readonly keys: SigningKeys;
  readonly tokens: Tokens;
}

export function buildTokens({ client, namespace, live, lease, lifecycle, clock, log }: ClusterParts): TokenParts {
  const settings = () => live.value.authentication;
  const idTokenClients = () => live.value.gateway.idTokenClients;
  const refreshTokens = lifecycle.add('refresh-tokens', RefreshTokens.stored({ client, namespace, clock, log }));
  const keys = lifecycle.add('signing-keys', new SigningKeys({ client, namespace, clock, log }));
  lifecycle.add('key-rotation', new KeyRotation({ keys, settings, isLeader: () => lease.isHeld(), clock, log }));
  return { refreshTokens, keys, tokens: new Tokens({ keys, settings, idTokenClients, clock: () => clock.now() }) };
}
