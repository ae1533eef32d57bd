/**
 * JSON Web Tokens that this server issues: access tokens (RFC 9068) and id_tokens (OpenID Connect Core section 2). The algorithm comes
 * from the key that `kid` names, never from the token.
 */
import { hash, randomUUID } from 'node:crypto';
import jwt, { type JwtPayload, type VerifyOptions } from 'jsonwebtoken';
import { BoundedCache } from '../runtime/bounded-cache.ts';
import type { Session } from './sessions/session.ts';
import type { Subject } from './subject.ts';
import type { Algorithm, SigningKey, SigningKeys } from './signing-keys.ts';
import { parseMilliseconds } from '../runtime/time.ts';

/** Audience of tokens for a kube-apiserver that is configured with this issuer. */
export const kubernetesAudience = 'kubernetes';

export interface TokenSettings {
  readonly issuer: string;
  readonly signingAlgorithm: Algorithm;
  /** Milliseconds. */
  readonly accessTokenMaxAge: number;
  readonly maximumClockSkew: number;
}

/** Claims of a verified access token. The session and the user are checked elsewhere. */
export interface AccessClaims {
  readonly sub: string;
  readonly sid: string;
  readonly username: string;
  readonly clientID: string;
  readonly scope: string | undefined;
  readonly aud: string;
  readonly jti: string;
  readonly iat: number;
  /** Seconds since the epoch. */
  readonly exp: number;
}

/** Claims that an id_token can contain (OpenID Connect Core sections 2 and 5.1), depending on the scope. */
export const identityClaims: readonly string[] = [
  'iss',
  'sub',
  'aud',
  'exp',
  'iat',
  'auth_time',
  'nonce',
  'sid',
  'preferred_username',
  'name',
  'email',
  'email_verified',
  'groups',
];

/** Subject, audience and session of an id_token. */
export interface IdentityClaims {
  readonly sub: string;
  readonly aud: string;
  readonly sid: string;
}

interface Verified {
  readonly claims: AccessClaims;
  readonly generation: SigningKeys['generation'];
  readonly issuer: string;
}

/** Returns the cache key of a token: a hash, so that caches never hold the token itself. */
export const fingerprint = (token: string): string => hash('sha256', token, 'base64');

/** Maximum lifetime of a token for another audience, in milliseconds: it cannot be revoked there (docs/guides/tokens.md). */
const maxForeignLife = 10 * 60_000;

/** Maximum characters of a token. This server signs no longer ones, so they are rejected before parsing. */
const maxTokenLength = 16 * 1024;

/** Milliseconds for which the result of a verification is cached. */
const verifiedLife = 3_600_000;

export class Tokens {
  readonly #keys: SigningKeys;
  readonly #settings: () => TokenSettings;
  readonly #clock: () => number;
  readonly #verified: BoundedCache<Verified>;

  constructor(options: { keys: SigningKeys; settings: () => TokenSettings; clock: () => number }) {
    this.#keys = options.keys;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#verified = new BoundedCache({
      name: 'verified_tokens',
      maxEntries: 20_000,
      maxBytes: 32 * 1024 * 1024,
      ttl: verifiedLife,
      sizeOf: ({ claims }) => JSON.stringify(claims).length,
      clock: this.#clock,
    });
  }

  /**
   * Issues an access token that expires no later than its session, and returns its lifetime in whole seconds. `scope` can be narrower
   * than that of the session (RFC 6749 section 6). Tokens for other audiences live for at most ten minutes.
   */
  issueAccess(
    session: Session,
    subject: Subject,
    scope: string | undefined,
    audience: string = this.#settings().issuer,
  ): { token: string; expiresIn: number } {
    const { issuer, signingAlgorithm, accessTokenMaxAge } = this.#settings();
    const now = this.#clock();
    const iat = Math.floor(now / 1_000);
    const life = audience === issuer ? accessTokenMaxAge : Math.min(accessTokenMaxAge, maxForeignLife);
    const exp = Math.floor(Math.min(now + life, parseMilliseconds(session.spec.expiresAt)) / 1_000);
    const token = sign(this.#keys.current(signingAlgorithm), 'at+jwt', {
      iss: issuer,
      sub: subject.uid,
      aud: audience,
      exp,
      iat,
      jti: randomUUID(),
      sid: session.metadata.name,
      client_id: session.spec.clientID,
      ...(scope === undefined ? {} : { scope }),
      username: subject.username,
      groups: subject.groups,
    });
    return { token, expiresIn: exp - iat };
  }

  /** Issues an id_token for the client of the session, with the claims that the scope requests. */
  issueIdentity(session: Session, subject: Subject, scope: string, nonce?: string): string {
    const { issuer, accessTokenMaxAge } = this.#settings();
    const iat = Math.floor(this.#clock() / 1_000);
    return sign(this.#keys.current('RS256'), 'JWT', {
      iss: issuer,
      sub: subject.uid,
      aud: session.spec.clientID,
      exp: iat + Math.floor(accessTokenMaxAge / 1_000),
      iat,
      auth_time: Math.floor(parseMilliseconds(session.spec.code?.authenticatedAt ?? session.spec.createdAt) / 1_000),
      ...(nonce === undefined ? {} : { nonce }),
      sid: session.metadata.name,
      ...identityOf(subject, new Set(scope.split(' '))),
    });
  }

  /**
   * Returns the claims of an id_token, also after it has expired (OpenID Connect RP-Initiated Logout section 4). Undefined if this server
   * did not issue it.
   */
  readIdentity(token: string): IdentityClaims | undefined {
    const claims = this.#read(token, 'JWT', { ignoreExpiration: true });
    const { sub, aud, sid } = (claims ?? {}) as Record<string, unknown>;
    return [sub, aud, sid].every((claim) => typeof claim === 'string')
      ? ({ sub, aud, sid } as IdentityClaims)
      : undefined;
  }

  /** Returns whether the unverified issuer of a token is this server. No other authenticator gets such a token. */
  isOurs(token: string): boolean {
    if (token.length > maxTokenLength) return false;
    try {
      return jwt.decode(token, { json: true })?.iss === this.#settings().issuer;
    } catch {
      // The parts of the token are not JSON.
      return false;
    }
  }

  /** Verifies an access token (RFC 9068 section 4). Undefined unless this server issued it for itself and it is valid now. */
  verifyAccess(token: string): AccessClaims | undefined {
    return this.#forThisServer(this.verifyForAny(token));
  }

  /** Verifies an access token of any audience that this server issues tokens for. */
  verifyForAny(token: string): AccessClaims | undefined {
    if (token.length > maxTokenLength) return undefined;
    const key = fingerprint(token);
    const known = this.#cached(key);
    if (known !== undefined) return this.#isCurrent(known) ? known : undefined;
    const claims = this.#verify(token);
    const { generation } = this.#keys;
    if (claims !== undefined) this.#verified.set(key, { claims, generation, issuer: this.#settings().issuer });
    return claims;
  }

  /** Returns the cached result of `verifyAccess` for a fingerprint if it is still valid; undefined if the token must be verified. */
  known(key: string): AccessClaims | undefined {
    const known = this.#cached(key);
    return known !== undefined && this.#isCurrent(known) ? this.#forThisServer(known) : undefined;
  }

  #forThisServer(claims: AccessClaims | undefined): AccessClaims | undefined {
    return claims?.aud === this.#settings().issuer ? claims : undefined;
  }

  /** Returns cached claims. A change of the issuer, or the removal of a key, invalidates all of them. */
  #cached(key: string): AccessClaims | undefined {
    const cached = this.#verified.get(key);
    const isValid = cached?.generation === this.#keys.generation && cached.issuer === this.#settings().issuer;
    return isValid ? cached.claims : undefined;
  }

  #isCurrent({ exp }: AccessClaims): boolean {
    return exp * 1_000 + this.#settings().maximumClockSkew > this.#clock();
  }

  #verify(token: string): AccessClaims | undefined {
    const { issuer, maximumClockSkew } = this.#settings();
    const claims = this.#read(token, 'at+jwt', {
      audience: [issuer, kubernetesAudience],
      clockTimestamp: Math.floor(this.#clock() / 1_000),
      clockTolerance: Math.floor(maximumClockSkew / 1_000),
    });
    return claims && claimsOf(claims);
  }

  /** Verifies the signature, the issuer, the type and `options`, and returns the claims. */
  #read(token: string, typ: string, options: VerifyOptions): JwtPayload | undefined {
    if (token.length > maxTokenLength) return undefined;
    try {
      const kid = jwt.decode(token, { complete: true })?.header.kid;
      const key = kid === undefined ? undefined : this.#keys.find(kid);
      if (key === undefined) return undefined;
      const { issuer } = this.#settings();
      const { header, payload } = jwt.verify(token, key.publicKey, {
        ...options,
        algorithms: [key.alg],
        issuer,
        complete: true,
      });
      // RFC 7515 section 4.1.11: no extension is supported, and this server issues no token that requires one.
      const isOfType = header.typ === typ && header.crit === undefined;
      return isOfType && typeof payload === 'object' ? payload : undefined;
    } catch {
      return undefined;
    }
  }
}

function claimsOf(payload: JwtPayload): AccessClaims | undefined {
  const { sub, sid, username, client_id: clientID, aud, jti, scope, exp, iat } = payload as Record<string, unknown>;
  const texts = [sub, sid, username, clientID, aud, jti, scope ?? ''].every((claim) => typeof claim === 'string');
  if (!texts || typeof exp !== 'number' || typeof iat !== 'number') return undefined;
  return { sub, sid, username, clientID, aud, jti, scope, exp, iat } as AccessClaims;
}

/**
 * Returns the claims about a user that the scopes allow (OpenID Connect Core section 5.4). `email_verified` is always true: users cannot
 * set their own e-mail address. It comes from an administrator, a company directory, or a provider that has verified it.
 */
export const identityOf = (subject: Subject, scopes: ReadonlySet<string>): Record<string, unknown> => ({
  ...(scopes.has('profile')
    ? { preferred_username: subject.username, name: subject.displayName ?? subject.username }
    : {}),
  ...(scopes.has('email') && subject.email !== undefined ? { email: subject.email, email_verified: true } : {}),
  ...(scopes.has('groups') ? { groups: subject.groups } : {}),
});

const sign = (key: SigningKey, typ: string, claims: Record<string, unknown>): string =>
  jwt.sign(claims, key.privateKey, { algorithm: key.alg, header: { alg: key.alg, kid: key.kid, typ } });
