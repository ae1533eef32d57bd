/**
 * Refresh tokens: `<sid>.<256 bits>.<seal>`, opaque to clients; only their hashes are stored. The refresh token that
 * replaces a used token is an HMAC of the used token. Every retry within the grace period therefore gets the same new
 * refresh token on every replica, without stored state. The seal is an HMAC of the rest of the token. A token without a
 * valid seal is rejected without a read from the cluster. A token with a valid seal was issued by this server at some
 * time.
 */
import { createHash, createHmac, createSecretKey, randomBytes, timingSafeEqual, type KeyObject } from 'node:crypto';
import { objectNames } from '../config/names.ts';
import { KeySecret, type KeySource } from './key-secret.ts';

/** Returns a new name for a Session: 32 lower-case hex digits. */
export const newSessionID = (): string => randomBytes(16).toString('hex');
export const isSessionID = (text: string): boolean => /^[0-9a-f]{32}$/.test(text);

const shape = /^(([0-9a-f]{32})\.[A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{22})$/;
const sealBytes = 16;

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export function sameHash(a: string, b: string | undefined): boolean {
  if (b === undefined) return false;
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export class RefreshTokens {
  /**
   * The key is a KeyObject, because Node would convert raw bytes for each HMAC. The conversion costs ten times as much
   * as the HMAC.
   */
  #key: KeyObject;
  #secret: KeySecret | undefined;

  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** Creates an instance that reads its HMAC key from a Secret in `start`. */
  static stored(source: KeySource): RefreshTokens {
    const tokens = new RefreshTokens(Buffer.alloc(0));
    tokens.#secret = new KeySecret({
      ...source,
      name: objectNames.refreshKeySecret,
      make: () => ({ key: randomBytes(32) }),
      use: ({ key }) => {
        if (key === undefined || key.length < 32)
          throw new Error(
            `Secret ${objectNames.refreshKeySecret}: "key" must have at least 32 bytes; delete the Secret to create a new one`,
          );
        tokens.#key = createSecretKey(key);
      },
    });
    return tokens;
  }

  /** Reads or creates the Secret, then watches it. Throws if its data is invalid. */
  async start(): Promise<void> {
    await this.#secret?.start();
  }

  stop(): void {
    this.#secret?.stop();
  }

  /** Derives the session name from a user code. The name cannot be guessed without the code. */
  sessionFor(userCode: string): string {
    return this.#mac(`user code ${userCode}`).toString('hex').slice(0, 32);
  }

  first(sid: string): string {
    return this.#sealed(`${sid}.${randomBytes(32).toString('base64url')}`);
  }

  /** Returns the new refresh token that replaces a token with a valid seal. */
  successor(token: string): string {
    return this.#sealed(`${this.sessionOf(token) ?? ''}.${this.#mac(token).toString('base64url')}`);
  }

  /**
   * Returns the session to which a token belongs, even if the token was used before; undefined if the token has no
   * valid seal.
   */
  sessionOf(token: string): string | undefined {
    const [, body, sid, seal] = shape.exec(token) ?? [];
    return body !== undefined && sameHash(this.#seal(body), seal) ? sid : undefined;
  }

  /** Returns a keyed hash that hides the text, which may be a password that was typed into the wrong field. */
  mark(text: string): string {
    return this.#mac(`mark ${text}`).subarray(0, 12).toString('base64url');
  }

  /** Derives a secret from `text`. The key is needed to derive the secret, and only replicas have the key. */
  derive(text: string): string {
    return this.#mac(`derived ${text}`).toString('base64url');
  }

  #sealed(body: string): string {
    return `${body}.${this.#seal(body)}`;
  }

  #seal(body: string): string {
    return this.#mac(body).subarray(0, sealBytes).toString('base64url');
  }

  /**
   * Returns an HMAC of a text. One key serves all purposes, because their inputs (bodies, tokens, user codes, marks,
   * derivations) can never be equal.
   */
  #mac(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
