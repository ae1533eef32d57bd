/**
 * Refresh tokens: `<sid>.<256 bits>.<seal>`, opaque to clients; only their hashes are stored. The successor of a token is an HMAC
 * of it, so every retry within the grace gets the same one, on every replica, and nothing needs to be remembered for it. The seal
 * is an HMAC of the rest: what has none of ours costs no look at the cluster, and what has one was genuine at some time.
 */
import { createHash, createHmac, createSecretKey, randomBytes, timingSafeEqual, type KeyObject } from 'node:crypto';
import { objectNames } from '../config/names.ts';
import { KeySecret, type KeySource } from './key-secret.ts';

/** 32 lower-case hex digits: the name of a Session. */
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
  /** Not the bytes: those would be made a key of for each HMAC, which costs ten times as much as the HMAC. */
  #key: KeyObject;
  #secret: KeySecret | undefined;

  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** With the HMAC key of a Secret, from `start` on. */
  static stored(source: KeySource): RefreshTokens {
    const tokens = new RefreshTokens(Buffer.alloc(0));
    tokens.#secret = new KeySecret({
      ...source,
      name: objectNames.refreshKeySecret,
      make: () => ({ key: randomBytes(32) }),
      use: ({ key }) => {
        if (key === undefined || key.length < 32)
          throw new Error(
            `Secret ${objectNames.refreshKeySecret} has no key of 32 bytes; delete the Secret and a new one is made`,
          );
        tokens.#key = createSecretKey(key);
      },
    });
    return tokens;
  }

  /** Reads the key or makes it, and follows it from then on. Throws if the Secret holds something else. */
  async start(): Promise<void> {
    await this.#secret?.start();
  }

  stop(): void {
    this.#secret?.stop();
  }

  /** The session that a device and its user mean by a code: what nobody can tell who does not know the code. */
  nameOf(userCode: string): string {
    return this.#mac(`user code ${userCode}`).toString('hex').slice(0, 32);
  }

  first(sid: string): string {
    return this.#sealed(`${sid}.${randomBytes(32).toString('base64url')}`);
  }

  /** Of a token of ours. */
  successor(token: string): string {
    return this.#sealed(`${this.sessionOf(token) ?? ''}.${this.#mac(token).toString('base64url')}`);
  }

  /** The session that a token belongs or once belonged to; undefined if it is none of ours. */
  sessionOf(token: string): string | undefined {
    const [, body, sid, seal] = shape.exec(token) ?? [];
    return body !== undefined && sameHash(this.#seal(body), seal) ? sid : undefined;
  }

  /** Names a text to whoever has the key, and says nothing of it to others: it may be a password typed into the wrong field. */
  mark(text: string): string {
    return this.#mac(`mark ${text}`).subarray(0, 12).toString('base64url');
  }

  /** A secret that every replica derives from `text`, and nobody else. */
  derive(text: string): string {
    return this.#mac(`derived ${text}`).toString('base64url');
  }

  #sealed(body: string): string {
    return `${body}.${this.#seal(body)}`;
  }

  #seal(body: string): string {
    return this.#mac(body).subarray(0, sealBytes).toString('base64url');
  }

  /** A body, a token, a user code, what is marked and what is derived from never look the same, so one key does for all. */
  #mac(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}
