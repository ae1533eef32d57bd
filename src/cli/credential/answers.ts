/** What a server says, taken for nothing that it cannot be: it may be broken, or nobody's friend. Times in seconds. */
import type { CachedTokens } from './token-cache.ts';

/** Longer texts are nothing to read. */
const longest = 1_000;

/**
 * What somebody else wrote, for a terminal: characters that would steer it, begin lines, turn the direction of the text or hide in it are
 * named instead.
 */
export function shown(text: string): string {
  const plain = text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
  return plain.length > longest ? `${plain.slice(0, longest)}…` : plain;
}

export type TokenServerResponse = Readonly<Record<string, unknown>>;

/** RFC 6750 section 2.1: what a header carries. */
const accessTokenShape = /^[A-Za-z0-9._~+/-]+=*$/;
/** RFC 6749 appendix A.17. */
const refreshTokenShape = /^[ -~]+$/;
/** The last time that a date can name; milliseconds since the epoch. */
const lastTime = 8.64e15;
const longestLife = 86_400;

const matches = (shape: RegExp, value: unknown): value is string => typeof value === 'string' && shape.test(value);
const isPositive = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0;

const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= lastTime;

/** Tokens that can be used, and kept. */
export function tokensIn({
  accessToken,
  refreshToken,
  obtainedAt,
  expiresAt,
}: TokenServerResponse): CachedTokens | undefined {
  if (!matches(accessTokenShape, accessToken) || !matches(refreshTokenShape, refreshToken)) return undefined;
  if (!isTime(obtainedAt) || !isTime(expiresAt)) return undefined;
  return { accessToken, refreshToken, obtainedAt, expiresAt };
}

/** RFC 6749 section 5.1. `now`: milliseconds since the epoch. */
export function tokensOf(said: TokenServerResponse, now: number): CachedTokens | undefined {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: life } = said;
  if (!isPositive(life)) return undefined;
  const expiresAt = now + Math.min(life, longestLife) * 1_000;
  return tokensIn({ accessToken, refreshToken, obtainedAt: now, expiresAt });
}

interface Device {
  readonly code: string;
  readonly userCode: string;
  readonly address: string;
  readonly interval: number;
  readonly life: number;
}

/** RFC 8628 section 3.2. Whatever is no number of seconds is left out. */
export function deviceOf(said: TokenServerResponse): Device | undefined {
  const {
    device_code: code,
    user_code: userCode,
    verification_uri,
    verification_uri_complete,
    interval,
    expires_in,
  } = said;
  const address = verification_uri_complete ?? verification_uri;
  if (typeof code !== 'string' || typeof userCode !== 'string' || typeof address !== 'string') return undefined;
  if (!address.startsWith('https://')) return undefined;
  return {
    code,
    userCode,
    address,
    interval: isPositive(interval) ? Math.min(Math.max(interval, 1), longestPause) : 5,
    life: isPositive(expires_in) ? Math.min(expires_in, 3_600) : 600,
  };
}

export const longestPause = 60;
