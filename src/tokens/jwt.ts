/**
 * JSON Web Tokens that this server issues: access tokens (RFC 9068) and id_tokens (OpenID Connect Core section 2). The
 * algorithm comes from the key that `kid` names, never from the token.
 */
import { hash, randomUUID } from 'node:crypto';
import jwt, { type JwtPayload, type VerifyOptions } from 'jsonwebtoken';
import { kubernetesAudience, passwordChangeAudience } from '../config/names.ts';
import { BoundedCache } from '../runtime/bounded-cache.ts';
import type { Session } from './sessions/session.ts';
import type { Subject } from './subject.ts';
import type { Algorithm, SigningKey, SigningKeys } from './signing-keys.ts';
import { parseMilliseconds, rfc3339 } from '../runtime/time.ts';

export interface TokenSettings {
  readonly issuer: string;
  readonly signingAlgorithm: Algorithm;
  /** Maximum lifetime of access tokens in milliseconds. */
  readonly accessTokenMaxAge: number;
  readonly maximumClockSkew: number;
}

/** Claims of a verified token. The verification of a token does not check its session and user. */
interface CommonClaims {
  readonly sub: string;
  readonly sid: string;
  readonly clientID: string;
  readonly aud: string;
  /** Seconds since the epoch. */
  readonly exp: number;
}

/** Claims of an access token. */
export interface AccessClaims extends CommonClaims {
  readonly type: 'access';
  readonly username: string;
  readonly scope: string | undefined;
  readonly jti: string;
  readonly iat: number;
}

/** Claims of an id_token, whose audience is its client. */
export interface IdentityClaims extends CommonClaims {
  readonly type: 'identity';
}

export type TokenClaims = AccessClaims | IdentityClaims;

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

interface Verified {
  readonly claims: TokenClaims;
  readonly generation: SigningKeys['generation'];
  readonly issuer: string;
}

/** Returns the cache key of a token: a hash, so that caches never hold the token itself. */
export const fingerprint = (token: string): string => hash('sha256', token, 'base64');

/**
 * Maximum lifetime in milliseconds of a token for another audience. The server of that audience cannot notice a
 * revocation (docs/guides/tokens.md).
 */
const maxForeignLife = 10 * 60_000;

/**
 * Maximum characters of a token. This server never signs a longer token, so longer tokens are rejected before parsing.
 */
const maxTokenLength = 16 * 1024;

/** Milliseconds for which the result of a verification is cached. */
const verifiedLife = 3_600_000;

export class Tokens {
  readonly #keys: SigningKeys;
  readonly #settings: () => TokenSettings;
  readonly #idTokenClients: () => readonly string[];
  readonly #clock: () => number;
  readonly #verified: BoundedCache<Verified>;

  /** `idTokenClients`: clients whose id_tokens this server accepts as bearer tokens. */
  constructor(options: {
    keys: SigningKeys;
    settings: () => TokenSettings;
    idTokenClients: () => readonly string[];
    clock: () => number;
  }) {
    this.#keys = options.keys;
    this.#settings = options.settings;
    this.#idTokenClients = options.idTokenClients;
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
   * Issues an access token that expires no later than its session, and returns its lifetime in whole seconds. `scope`
   * can be narrower than the scope of the session (RFC 6749 section 6). Tokens for other audiences live for at most ten
   * minutes. A token of a user who must change their password has a dedicated audience.
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
      aud: subject.passwordChangeRequired === true ? passwordChangeAudience : audience,
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

  /**
   * Issues an id_token for the client of the session, with the claims that the scope requests. The id_token expires no
   * later than the session, because it can be a bearer token.
   */
  issueIdentity(
    session: Session,
    subject: Subject,
    { scope, nonce, alg }: { scope: string; nonce: string | undefined; alg: Algorithm },
  ): string {
    const { issuer, accessTokenMaxAge } = this.#settings();
    const now = this.#clock();
    return sign(this.#keys.current(alg), 'JWT', {
      iss: issuer,
      sub: subject.uid,
      aud: session.spec.clientID,
      exp: Math.floor(Math.min(now + accessTokenMaxAge, parseMilliseconds(session.spec.expiresAt)) / 1_000),
      iat: Math.floor(now / 1_000),
      auth_time: Math.floor(parseMilliseconds(session.spec.code?.authenticatedAt ?? session.spec.createdAt) / 1_000),
      ...(nonce === undefined ? {} : { nonce }),
      sid: session.metadata.name,
      ...identityOf(subject, new Set(scope.split(' '))),
    });
  }

  /**
   * Returns the claims of an id_token, even after it has expired (OpenID Connect RP-Initiated Logout section 4).
   * Returns undefined if this server did not issue the token.
   */
  readIdentity(token: string): IdentityClaims | undefined {
    const claims = this.#read(token, { ignoreExpiration: true });
    return claims?.type === 'identity' ? claims : undefined;
  }

  /** Returns whether the unverified issuer of a token is this server. Other authenticators never see such a token. */
  isOurs(token: string): boolean {
    if (token.length > maxTokenLength) return false;
    try {
      return jwt.decode(token, { json: true })?.iss === this.#settings().issuer;
    } catch {
      // The parts of the token are not JSON.
      return false;
    }
  }

  /**
   * Verifies an access token (RFC 9068 section 4). Returns undefined unless this server issued the token for itself and
   * the token is valid now.
   */
  verifyAccess(token: string): AccessClaims | undefined {
    const claims = this.verifyForAny(token);
    return claims !== undefined && this.#isOwn(claims) ? claims : undefined;
  }

  /** Verifies an access token for this server or for kube-apiserver. */
  verifyForCluster(token: string): AccessClaims | undefined {
    const claims = this.verifyForAny(token);
    return claims !== undefined && (claims.aud === kubernetesAudience || this.#isOwn(claims)) ? claims : undefined;
  }

  /** Verifies an access token of any audience, including other resource servers. */
  verifyForAny(token: string): AccessClaims | undefined {
    const claims = this.#verify(token);
    return claims?.type === 'access' ? claims : undefined;
  }

  /** Verifies a bearer token of this server: an access token, or an id_token of one of `idTokenClients`. */
  verifyBearer(token: string): TokenClaims | undefined {
    const claims = this.#verify(token);
    return claims && this.#misuseOf(claims) === undefined ? claims : undefined;
  }

  /**
   * Returns the cached result of `verifyBearer` for a fingerprint if it is still valid; undefined if the token must be
   * verified.
   */
  known(key: string): TokenClaims | undefined {
    const known = this.#cached(key);
    return known !== undefined && this.#isCurrent(known) && this.#misuseOf(known) === undefined ? known : undefined;
  }

  /**
   * Describes why a refused token that this server signed is not a valid bearer token. Returns undefined for every
   * other token, so that forged tokens reveal nothing.
   */
  problemOf(token: string): string | undefined {
    const claims = this.#read(token, { ignoreExpiration: true });
    if (claims === undefined) return undefined;
    const misuse = this.#misuseOf(claims);
    if (misuse !== undefined) return misuse;
    return this.#isCurrent(claims)
      ? 'the token was revoked, or its user or client was removed'
      : `the token expired at ${rfc3339(claims.exp * 1_000)}`;
  }

  /**
   * Describes why a token with these claims is not a bearer token for this server; undefined if it is a bearer token.
   */
  #misuseOf(claims: TokenClaims): string | undefined {
    const { type, aud } = claims;
    if (type === 'access')
      return this.#isOwn(claims) ? undefined : `the token is for the audience "${aud}", not for this server`;
    if (this.#idTokenClients().includes(aud)) return undefined;
    return `the token is an id_token of the client "${aud}", which gateway.idTokenClients does not list`;
  }

  #verify(token: string): TokenClaims | undefined {
    if (token.length > maxTokenLength) return undefined;
    const key = fingerprint(token);
    const known = this.#cached(key);
    if (known !== undefined) return this.#isCurrent(known) ? known : undefined;
    const { issuer, maximumClockSkew } = this.#settings();
    const claims = this.#read(token, {
      clockTimestamp: Math.floor(this.#clock() / 1_000),
      clockTolerance: Math.floor(maximumClockSkew / 1_000),
    });
    if (claims !== undefined) this.#verified.set(key, { claims, generation: this.#keys.generation, issuer });
    return claims;
  }

  /** Returns cached claims. A change of the issuer, or the removal of a key, invalidates all of them. */
  #cached(key: string): TokenClaims | undefined {
    const cached = this.#verified.get(key);
    const isValid = cached?.generation === this.#keys.generation && cached.issuer === this.#settings().issuer;
    return isValid ? cached.claims : undefined;
  }

  /** Returns whether an access token is for this server. */
  #isOwn({ aud }: TokenClaims): boolean {
    return aud === this.#settings().issuer || aud === passwordChangeAudience;
  }

  #isCurrent({ exp }: TokenClaims): boolean {
    return exp * 1_000 + this.#settings().maximumClockSkew > this.#clock();
  }

  /** Verifies the signature, the issuer, the type and `options`, and returns the claims. */
  #read(token: string, options: VerifyOptions): TokenClaims | undefined {
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
      // RFC 7515 section 4.1.11: no extension is supported, and no token of this server requires an extension.
      return header.crit === undefined && typeof payload === 'object' ? claimsOf(header.typ, payload) : undefined;
    } catch {
      return undefined;
    }
  }
}

const areTexts = (...claims: unknown[]): boolean => claims.every((claim) => typeof claim === 'string');

/** Returns the claims of a token of this type; undefined for another type or a missing claim. */
function claimsOf(typ: string | undefined, payload: JwtPayload): TokenClaims | undefined {
  const { sub, sid, username, client_id: clientID, aud, jti, scope, exp, iat } = payload as Record<string, unknown>;
  if (!areTexts(sub, sid, aud) || typeof exp !== 'number' || typeof iat !== 'number') return undefined;
  if (typ === 'JWT') return { type: 'identity', sub, sid, clientID: aud, aud, exp } as IdentityClaims;
  if (typ !== 'at+jwt' || !areTexts(username, clientID, jti, scope ?? '')) return undefined;
  return { type: 'access', sub, sid, username, clientID, aud, jti, scope, exp, iat } as AccessClaims;
}

/**
 * Returns the claims about a user that the scopes allow (OpenID Connect Core section 5.4). `email_verified` is always
 * true: users cannot set their own e-mail address. The address comes from an administrator, a company directory, or a
 * provider that has verified it.
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
