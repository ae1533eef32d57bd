import { addressKeys, keysOf, type ShareHolder } from '../../runtime/shares.ts';
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import { serviceUnavailable, invalidToken } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import { Slots } from '../../runtime/slots.ts';
import { fingerprint } from '../../tokens/jwt.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { Source, TokenAuthenticator } from './authenticator.ts';

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    /**
     * Audiences of `spec.audiences` for which the token is valid. If the list is empty or missing, the token is valid
     * for kube-apiserver's own audiences.
     */
    readonly audiences?: readonly string[];
    readonly user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
  };
}

const limits = { maxEntries: 10_000, maxBytes: 16 * 1024 * 1024 };
const acceptedLife = 10_000;
const refusedLife = 5_000;
const queue = { total: 2_000, perUser: 400, timeout: 5_000 };
/**
 * Limits of the queue for rechecks of streams. All streams of a user, at most 1,000, are rechecked together, and each
 * stream may have its own token.
 */
const recheckQueue = { total: 10_000, perUser: 1_000, timeout: 10_000 };
const maxTokenLength = 16 * 1024;

/**
 * Returns the unverified claims of a JWT (RFC 7519 section 3: three base64url parts, the first two of them JSON
 * objects).
 */
function claimsOf(token: string): { readonly iss?: unknown; readonly exp?: unknown } | undefined {
  const parts = token.split('.');
  if (token.length > maxTokenLength || parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part)))
    return undefined;
  try {
    const [header, payload] = parts
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as unknown);
    return typeof (header as { alg?: unknown } | null)?.alg === 'string'
      ? ((payload as object | null) ?? {})
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the issuer that a JWT claims; undefined if the token is not a JWT. */
export function issuerOf(token: string): string | undefined {
  const issuer = claimsOf(token)?.iss;
  return typeof issuer === 'string' ? issuer : undefined;
}

/** Returns the expiry of a reviewed JWT in milliseconds since the epoch; undefined if it has none. */
export function expiryOf(token: string): number | undefined {
  const exp = claimsOf(token)?.exp;
  return typeof exp === 'number' ? exp * 1_000 : undefined;
}

const sourceHolder = (source: Source): ShareHolder =>
  typeof source === 'string' ? addressKeys(source) : `streams of ${source.streamsOf}`;

/** Sends a TokenReview. Returns undefined unless kube-apiserver accepts the token for one of the audiences. */
async function requestReview(
  client: KubeClient,
  token: string,
  audiences: readonly string[],
): Promise<UserInfo | undefined> {
  const reviewed = await client.json<TokenReview>('/apis/authentication.k8s.io/v1/tokenreviews', {
    method: 'POST',
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
    },
  });
  const { authenticated, audiences: validFor = [], user } = reviewed.status ?? {};
  if (authenticated !== true || user?.username === undefined) return undefined;
  if (audiences.length > 0 && validFor.length > 0 && !validFor.some((one) => audiences.includes(one))) return undefined;
  return withAuthenticated({
    username: user.username,
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    groups: user.groups ?? [],
    ...(user.extra === undefined ? {} : { extra: user.extra }),
    via: 'token-review',
  });
}

/**
 * Authenticates ServiceAccount tokens, and all other tokens that kube-apiserver accepts, by TokenReview
 * (authentication.k8s.io/v1). Only JWTs are reviewed, and they must be valid for one of the `audiences`.
 *
 * - Results are cached for a few seconds. Refusals have a separate cache, so that forged tokens do not evict valid
 *   tokens.
 * - Each address holds only a few slots, so that reviews for other addresses stay fast.
 * - Rechecks of open streams have their own slots, which forged tokens cannot fill.
 * - All issuers except the issuer of this server's own ServiceAccount token share a small number of slots.
 */
export function tokenReview(
  client: KubeClient,
  audiences: () => Promise<readonly string[]>,
  clock: () => number = () => performance.now(),
): TokenAuthenticator {
  const accepted = new BoundedCache<UserInfo>({
    ...limits,
    name: 'accepted_tokens',
    ttl: acceptedLife,
    sizeOf: (user) => JSON.stringify(user).length,
    clock,
  });
  const refused = new BoundedCache<true>({ ...limits, name: 'refused_tokens', ttl: refusedLife, clock });
  const inProgress = new InProgress<Promise<UserInfo | undefined>>('token_reviews_in_progress');
  const ownIssuer = new Slots({ what: 'token reviews', total: 32, perUser: 4, queue });
  const otherIssuers = new Slots({ what: 'token reviews of other issuers', total: 4, perUser: 2, queue });
  const rechecks = new Slots({ what: 'token reviews of streams', total: 32, perUser: 8, queue: recheckQueue });

  async function slotsFor(issuer: string): Promise<Slots> {
    const own = await client.issuer();
    return own === undefined || own === issuer ? ownIssuer : otherIssuers;
  }

  async function reviewInTurn(token: string, issuer: string, source: Source): Promise<UserInfo | undefined> {
    const key = fingerprint(token);
    try {
      const slots = typeof source === 'string' ? await slotsFor(issuer) : rechecks;
      const holder = sourceHolder(source);
      return await slots.run(holder, async () => {
        // While this review waited for a slot, another caller's review of the same token may have completed.
        const known = accepted.get(key);
        if (known !== undefined || refused.has(key)) return known;
        const user = await requestReview(client, token, await audiences());
        if (user === undefined) refused.set(key, true);
        else accepted.set(key, user);
        return user;
      });
    } catch (error) {
      if (error instanceof KubeError) throw serviceUnavailable('token review failed; try again', 1, error);
      throw error;
    }
  }

  /**
   * Joins a review in progress only if the same caller started it, so that no caller waits for the slots of another
   * caller.
   */
  async function review(token: string, issuer: string, source: Source): Promise<UserInfo | undefined> {
    const key = `${fingerprint(token)} ${keysOf(sourceHolder(source))[0]}`;
    let reviewed = inProgress.get(key);
    if (reviewed === undefined) {
      reviewed = reviewInTurn(token, issuer, source).finally(() => inProgress.delete(key));
      inProgress.set(key, reviewed);
    }
    return await reviewed;
  }

  async function authenticate(token: string, source: Source): Promise<UserInfo | undefined> {
    const issuer = issuerOf(token);
    if (issuer === undefined) return undefined;
    const key = fingerprint(token);
    let user = accepted.get(key);
    if (user === undefined && !refused.has(key)) user = await review(token, issuer, source);
    if (user === undefined) throw invalidToken();
    return user;
  }

  return Object.assign(authenticate, { known: (key: string) => accepted.get(key) });
}
