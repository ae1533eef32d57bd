/**
 * Our own JSON Web Tokens: access tokens (RFC 9068) and id_tokens (OpenID Connect Core section 2). The algorithm comes from the
 * key that `kid` names, never from the token.
 */
import { hash, randomUUID } from 'node:crypto';
import jwt, { type JwtPayload, type VerifyOptions } from 'jsonwebtoken';
import { BoundedCache } from '../runtime/bounded-cache.ts';
import type { Session } from './sessions/session.ts';
import type { Subject } from './subject.ts';
import type { Algorithm, SigningKey, SigningKeys } from './signing-keys.ts';
import { parseMilliseconds } from '../runtime/time.ts';

/** Of tokens for kube-apiserver, where our issuer is configured. */
export const kubernetesAudience = 'kubernetes';

export interface TokenSettings {
  readonly issuer: string;
  readonly signingAlgorithm: Algorithm;
  /** Milliseconds. */
  readonly accessTokenMaxAge: number;
  readonly maximumClockSkew: number;
}

/** What a verified access token says; whether its session and user still stand is asked elsewhere. */
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

/** What an id_token may say (OpenID Connect Core sections 2 and 5.1); which of it depends on the scope. */
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

/** Whom an id_token speaks of, to whom, and of which session. */
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

/** The token as the key of a cache: never the token itself. */
export const fingerprint = (token: string): string => hash('sha256', token, 'base64');

/** Longest life of a token for others, in milliseconds: it cannot be revoked there (docs/tokens.md). */
const longestForOthers = 10 * 60_000;

/** Nothing that we sign is longer; a longer one is not worth a look. */
const longestToken = 16 * 1024;

/** After this a token is verified again, in milliseconds. */
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
   * An access token that does not outlive its session, and its life in whole seconds. Its `scope` may be less than that of the
   * session (RFC 6749 section 6); one for another audience than us is short.
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
    const life = audience === issuer ? accessTokenMaxAge : Math.min(accessTokenMaxAge, longestForOthers);
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

  /** An id_token for the client of the session, with the claims that the scope asks for. */
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

  /** What an id_token of ours says, also when it has expired (OpenID Connect RP-Initiated Logout section 4); undefined if it is none. */
  readIdentity(token: string): IdentityClaims | undefined {
    const claims = this.#read(token, 'JWT', { ignoreExpiration: true });
    const { sub, aud, sid } = (claims ?? {}) as Record<string, unknown>;
    return [sub, aud, sid].every((claim) => typeof claim === 'string')
      ? ({ sub, aud, sid } as IdentityClaims)
      : undefined;
  }

  /** True if a token says that it is ours, verified or not: then nobody else is asked about it. */
  isOurs(token: string): boolean {
    if (token.length > longestToken) return false;
    try {
      return jwt.decode(token, { json: true })?.iss === this.#settings().issuer;
    } catch {
      // Its parts are no JSON.
      return false;
    }
  }

  /** RFC 9068 section 4. Undefined for anything but an access token of ours, for us, that is valid now. */
  verifyAccess(token: string): AccessClaims | undefined {
    return this.#forUs(this.verifyForAny(token));
  }

  /** The same for whomever it is. */
  verifyForAny(token: string): AccessClaims | undefined {
    if (token.length > longestToken) return undefined;
    const key = fingerprint(token);
    const known = this.#kept(key);
    if (known !== undefined) return this.#isCurrent(known) ? known : undefined;
    const claims = this.#verify(token);
    const { generation } = this.#keys;
    if (claims !== undefined) this.#verified.set(key, { claims, generation, issuer: this.#settings().issuer });
    return claims;
  }

  /** What `verifyAccess` said before of the token with this fingerprint, if that is so now; undefined if it is to be verified. */
  known(key: string): AccessClaims | undefined {
    const known = this.#kept(key);
    return known !== undefined && this.#isCurrent(known) ? this.#forUs(known) : undefined;
  }

  #forUs(claims: AccessClaims | undefined): AccessClaims | undefined {
    return claims?.aud === this.#settings().issuer ? claims : undefined;
  }

  /** What was verified for one issuer, or with one key, says nothing under another. */
  #kept(key: string): AccessClaims | undefined {
    const kept = this.#verified.get(key);
    const stands = kept?.generation === this.#keys.generation && kept.issuer === this.#settings().issuer;
    return stands ? kept.claims : undefined;
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

  /** The claims of a token of ours of one type, its signature and whatever else is asked for verified. */
  #read(token: string, typ: string, options: VerifyOptions): JwtPayload | undefined {
    if (token.length > longestToken) return undefined;
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
      // RFC 7515 section 4.1.11: we understand no extension, and none of our tokens demands one.
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
 * What the scopes let tell of a person (OpenID Connect Core section 5.4). Nobody sets an e-mail address of their own: those there are
 * come from an administrator, a directory, or a provider that has verified them.
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
