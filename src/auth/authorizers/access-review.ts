import { hash } from 'node:crypto';
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import { laneSizes, type KubeClient } from '../../cluster/client/client.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import { accessReviews, cachedDecisions } from '../../runtime/metrics/definitions.ts';
import { Slots } from '../../runtime/slots.ts';
import type { UserInfo } from '../user.ts';
import type { Attributes, Authorizer, Decision } from './authorizer.ts';

interface SubjectAccessReview {
  readonly status?: { readonly allowed?: boolean; readonly denied?: boolean; readonly reason?: string };
}

/** Maximum age of a cached decision in milliseconds. */
const maxDecisionAge = 10_000;
/** Limits of concurrent reviews. A single request may need a thousand reviews, which wait in the queue of its user. */
const reviewSlots = {
  total: laneSizes.reviews,
  perUser: laneSizes.reviews / 2,
  queue: { total: 20_000, perUser: 5_000, timeout: 10_000 },
};
/**
 * Group of kube-apiserver's superusers, whose requests need no review (k8s.io/apiserver
 * DelegatingAuthorizationOptions).
 */
const masters = 'system:masters';

/**
 * Reviews in flight. Rechecks of open streams have a separate lane, so that requests of a user do not delay the end of
 * a stream.
 */
interface Lane {
  readonly slots: Slots;
  readonly inFlight: InProgress<Promise<Decision>>;
}

const createLane = (what: string): Lane => ({
  slots: new Slots({ ...reviewSlots, what }),
  inFlight: new InProgress('access_reviews_in_progress'),
});

interface Reviewed {
  readonly decision: Decision;
  /** Time at which the review was requested, by the clock of `accessReview`. */
  readonly at: number;
}

/**
 * Authorizes by SubjectAccessReview (authorization.k8s.io/v1). Decisions are cached for 10 s from the time of their
 * request, and equal reviews in flight are merged.
 */
export function accessReview(client: KubeClient, clock: () => number = () => performance.now()): Authorizer {
  const decisions = new BoundedCache<Reviewed>({
    name: 'access_reviews',
    maxEntries: 50_000,
    maxBytes: 32 * 1024 * 1024,
    ttl: maxDecisionAge,
    sizeOf: ({ decision }) => decision.reason.length,
    clock,
  });
  const requests = createLane('access reviews');
  const rechecks = createLane('access reviews of open streams');

  async function requestReview(user: UserInfo, attributes: Attributes): Promise<Decision> {
    try {
      const { username, uid, groups, extra } = user;
      const review = await client.json<SubjectAccessReview>('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        method: 'POST',
        lane: 'reviews',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: username,
            ...(uid === undefined ? {} : { uid }),
            groups,
            ...(extra === undefined ? {} : { extra }),
            ...('path' in attributes
              ? { nonResourceAttributes: { verb: attributes.verb, path: attributes.path } }
              : { resourceAttributes: { ...attributes, version: '*' } }),
          },
        },
      });
      return {
        allowed: review.status?.allowed === true && review.status.denied !== true,
        reason: review.status?.reason ?? '',
      };
    } catch (error) {
      if (error instanceof KubeError) throw serviceUnavailable('access review failed; try again', 1, error);
      throw error;
    }
  }

  return {
    async authorize(user, attributes, maxAge = maxDecisionAge) {
      if (user.groups.includes(masters)) return { allowed: true, reason: '' };
      const key = keyOf(user, attributes);
      const at = clock();
      const cached = decisions.get(key);
      if (cached !== undefined && at - cached.at < maxAge) {
        cachedDecisions.add({});
        return cached.decision;
      }
      const { slots, inFlight } = maxAge < maxDecisionAge ? rechecks : requests;
      const current = inFlight.get(key);
      if (current !== undefined) return await current;
      const review = slots.run(user.username, () => requestReview(user, attributes));
      inFlight.set(key, review);
      let result: 'allowed' | 'denied' | 'error' = 'error';
      try {
        const decision = await review;
        decisions.set(key, { decision, at });
        result = decision.allowed ? 'allowed' : 'denied';
        return decision;
      } finally {
        accessReviews.observe({ result }, (clock() - at) / 1_000);
        inFlight.delete(key);
      }
    },
  };
}

/** Digests of users, so that a user with many groups is not written as JSON for each decision. */
const digests = new WeakMap<UserInfo, string>();

function digestOf(user: UserInfo): string {
  let digest = digests.get(user);
  if (digest === undefined) {
    const { username, uid, groups, extra } = user;
    digest = hash('sha256', JSON.stringify([username, uid, groups, extra]), 'base64');
    digests.set(user, digest);
  }
  return digest;
}

function keyOf(user: UserInfo, attributes: Attributes): string {
  const { verb } = attributes;
  if ('path' in attributes) return JSON.stringify([digestOf(user), verb, attributes.path]);
  const { group, resource, subresource = '', namespace = '', name = '' } = attributes;
  return JSON.stringify([digestOf(user), verb, group, resource, subresource, namespace, name]);
}
