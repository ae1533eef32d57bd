import { LRUCache } from 'lru-cache';
import { serviceUnavailable, unauthorized } from '../../errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { fingerprint } from '../tokens.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';
import type { TokenAuthenticator } from './authenticator.ts';

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    /** Those of `spec.audiences` that the token is for; none: it is for kube-apiserver's own. */
    readonly audiences?: readonly string[];
    readonly user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
  };
}

const cacheSize = 10_000;
const acceptedLife = 10_000;
const refusedLife = 5_000;
const atOnce = 32;
const longestToken = 16 * 1024;

/** RFC 7519 section 3: three base64url parts, the first two JSON objects; the second names an issuer. */
export function looksLikeJWT(token: string): boolean {
  const parts = token.split('.');
  if (token.length > longestToken || parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part)))
    return false;
  try {
    const [header, payload] = parts
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as unknown);
    return (
      typeof (header as { alg?: unknown } | null)?.alg === 'string' &&
      typeof (payload as { iss?: unknown } | null)?.iss === 'string'
    );
  } catch {
    return false;
  }
}

/**
 * ServiceAccount tokens and whatever else kube-apiserver accepts, by TokenReview (authentication.k8s.io/v1). Answers are kept for
 * seconds, refusals too; equal questions are asked once; at most 32 are under way; what is no JWT is not asked about.
 * `audiences`: a token is good for us when it is meant for one of these.
 */
export function tokenReview(
  client: KubeClient,
  audiences: () => Promise<readonly string[]>,
  clock: () => number = () => performance.now(),
): TokenAuthenticator {
  const known = new LRUCache<string, { user: UserInfo | undefined }>({ max: cacheSize, perf: { now: clock } });
  const asking = new Map<string, Promise<UserInfo | undefined>>();

  async function ask(token: string): Promise<UserInfo | undefined> {
    const wanted = await audiences();
    const reviewed = await client.json<TokenReview>('/apis/authentication.k8s.io/v1/tokenreviews', {
      method: 'POST',
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, ...(wanted.length === 0 ? {} : { audiences: wanted }) },
      },
    });
    const { authenticated, audiences: meant = [], user } = reviewed.status ?? {};
    if (authenticated !== true || user?.username === undefined) return undefined;
    if (wanted.length > 0 && meant.length > 0 && !meant.some((one) => wanted.includes(one))) return undefined;
    return withAuthenticated({
      username: user.username,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: user.groups ?? [],
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      via: 'token-review',
    });
  }

  async function review(key: string, token: string): Promise<UserInfo | undefined> {
    if (asking.size >= atOnce) throw serviceUnavailable('too many unknown tokens are being reviewed; try again');
    const answer = ask(token);
    asking.set(key, answer);
    try {
      const user = await answer;
      known.set(key, { user }, { ttl: user === undefined ? refusedLife : acceptedLife });
      return user;
    } catch (error) {
      if (error instanceof KubeError) throw serviceUnavailable('the token cannot be reviewed now', 1, error);
      throw error;
    } finally {
      asking.delete(key);
    }
  }

  return async (token) => {
    if (!looksLikeJWT(token)) return undefined;
    const key = fingerprint(token);
    const kept = known.get(key);
    const user = kept === undefined ? await (asking.get(key) ?? review(key, token)) : kept.user;
    if (user === undefined) throw unauthorized({ error: 'invalid_token' });
    return user;
  };
}
