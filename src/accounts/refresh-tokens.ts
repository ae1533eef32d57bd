/**
 * Refresh tokens: `<sid>.<256 bits>`, opaque to clients; only their hashes are stored. The successor of a token is an HMAC of
 * it, so every retry within the grace gets the same one, on every replica, and nothing needs to be remembered for it.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { objectNames } from '../config/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { ensure } from '../kube/ensure.ts';
import type { Secret } from './secret-refs.ts';

/** 32 lower-case hex digits: the name of a Session. */
export const newSessionID = (): string => randomBytes(16).toString('hex');

const shape = /^([0-9a-f]{32})\.[A-Za-z0-9_-]{43}$/;

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export const sameHash = (a: string, b: string | undefined): boolean =>
  b !== undefined && a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** More rotations than a session can see at one an hour in its default life. */
const longestChain = 1_000;

export class RefreshTokens {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Reads the HMAC key from its Secret, or makes it. */
  static async load(client: KubeClient, namespace: string): Promise<RefreshTokens> {
    const secret = await ensure<Secret>(
      client,
      `/api/v1/namespaces/${namespace}/secrets`,
      objectNames.refreshKeySecret,
      () => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: objectNames.refreshKeySecret, namespace },
        data: { key: randomBytes(32).toString('base64') },
      }),
    );
    const key = Buffer.from(secret.data?.['key'] ?? '', 'base64');
    if (key.length < 32)
      throw new Error(
        `Secret ${objectNames.refreshKeySecret} has no key of 32 bytes; delete the Secret and a new one is made`,
      );
    return new RefreshTokens(key);
  }

  first(sid: string): string {
    return `${sid}.${randomBytes(32).toString('base64url')}`;
  }

  successor(token: string): string {
    return `${this.sessionOf(token) ?? ''}.${createHmac('sha256', this.#key).update(token).digest('base64url')}`;
  }

  /** The session that a token claims to belong to; undefined if it does not look like one of ours. */
  sessionOf(token: string): string | undefined {
    return shape.exec(token)?.[1];
  }

  /** Whether the token with this hash comes after `token` in its chain: then `token` was genuine, and is being reused. */
  precedes(token: string, hash: string): boolean {
    let next = token;
    for (let step = 0; step < longestChain; step += 1) {
      next = this.successor(next);
      if (sameHash(hashToken(next), hash)) return true;
    }
    return false;
  }
}
