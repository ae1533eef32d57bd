/** Validates responses of a server that may be broken or malicious. Times are in seconds. */
import type { CachedTokens } from './token-cache.ts';

/** Maximum length of a text on the terminal. */
const maxLength = 1_000;

/**
 * Makes untrusted text safe for a terminal: escapes control characters, line breaks, and characters that are invisible
 * or change the text direction.
 */
export function terminalSafe(text: string): string {
  const plain = text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
  return plain.length > maxLength ? `${plain.slice(0, maxLength)}…` : plain;
}

export type TokenServerResponse = Readonly<Record<string, unknown>>;

/** Matches an access token that a header can carry (RFC 6750 section 2.1). */
const accessTokenShape = /^[A-Za-z0-9._~+/-]+=*$/;
/** Matches a refresh token (RFC 6749 appendix A.17). */
const refreshTokenShape = /^[ -~]+$/;
/** The latest time that a Date can represent, in milliseconds since the epoch. */
const lastTime = 8.64e15;
const maxLife = 86_400;

const matches = (shape: RegExp, value: unknown): value is string => typeof value === 'string' && shape.test(value);
const isPositive = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0;

const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= lastTime;

/** Returns the tokens if they can be used and cached. */
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

/** Returns the tokens of a token response (RFC 6749 section 5.1). `now` is in milliseconds since the epoch. */
export function tokensOf(response: TokenServerResponse, now: number): CachedTokens | undefined {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: life } = response;
  if (!isPositive(life)) return undefined;
  const expiresAt = now + Math.min(life, maxLife) * 1_000;
  return tokensIn({ accessToken, refreshToken, obtainedAt: now, expiresAt });
}

interface Device {
  readonly code: string;
  readonly userCode: string;
  readonly address: string;
  readonly interval: number;
  readonly life: number;
}

/** Returns a device authorization response (RFC 8628 section 3.2). Invalid numbers of seconds get defaults. */
export function deviceOf(response: TokenServerResponse): Device | undefined {
  const {
    device_code: code,
    user_code: userCode,
    verification_uri,
    verification_uri_complete,
    interval,
    expires_in,
  } = response;
  const address = verification_uri_complete ?? verification_uri;
  if (typeof code !== 'string' || typeof userCode !== 'string' || typeof address !== 'string') return undefined;
  if (!address.startsWith('https://')) return undefined;
  return {
    code,
    userCode,
    address,
    interval: isPositive(interval) ? Math.min(Math.max(interval, 1), maxInterval) : 5,
    life: isPositive(expires_in) ? Math.min(expires_in, 3_600) : 600,
  };
}

export const maxInterval = 60;
