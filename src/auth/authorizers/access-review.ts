import { hash } from 'node:crypto';
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import { laneSizes, type KubeClient } from '../../cluster/client/client.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import { accessReviews, cachedDecisions } from '../../runtime/metrics/definitions.ts';
import { Slots, type SlotsOptions } from '../../runtime/slots.ts';
import type { UserInfo } from '../user.ts';
import type { AccessReviews, Attributes, Decision, DatedDecision } from './authorizer.ts';

interface SubjectAccessReview {
  readonly status?: { readonly allowed?: boolean; readonly denied?: boolean; readonly reason?: string };
}

/** Maximum age of a cached decision in milliseconds. */
const maxDecisionAge = 10_000;
const queue = { total: 20_000, perUser: 5_000, timeout: 10_000 };
/** Limits of concurrent reviews. A single request may need a thousand reviews, which wait in the queue of its user. */
const reviewSlots = { total: laneSizes.reviews, perUser: laneSizes.reviews / 2, queue };
/** Limits for the reviews of many namespaces, which leave half of the connections to all other reviews. */
const namespaceSlots = { total: laneSizes.reviews / 2, perUser: laneSizes.reviews / 4, queue };
/**
 * Group of kube-apiserver's superusers, whose requests need no review (k8s.io/apiserver
 * DelegatingAuthorizationOptions).
 */
const masters = 'system:masters';

/**
 * Reviews in flight. Rechecks of open streams have a separate lane, so that requests of a user do not delay the end of
 * a stream. Reviews of many namespaces have a separate lane, so that they do not delay other requests of their user.
 */
interface Lane {
  readonly slots: Slots;
  readonly inFlight: InProgress<Promise<DatedDecision>>;
}

const createLane = (what: string, limits: Omit<SlotsOptions, 'what'> = reviewSlots): Lane => ({
  slots: new Slots({ ...limits, what }),
  inFlight: new InProgress('access_reviews_in_progress'),
});

/**
 * Authorizes by SubjectAccessReview (authorization.k8s.io/v1). Decisions are cached for 10 s from the time of their
 * request, and equal reviews in flight are merged.
 */
export function accessReview(client: KubeClient, clock: () => number = () => performance.now()): AccessReviews {
  const decisions = new BoundedCache<DatedDecision>({
    name: 'access_reviews',
    maxEntries: 50_000,
    maxBytes: 32 * 1024 * 1024,
    ttl: maxDecisionAge,
    sizeOf: ({ decision }) => decision.reason.length,
    clock,
  });
  const requests = createLane('access reviews');
  const rechecks = createLane('access reviews of open streams');
  const namespaces = createLane('access reviews of namespaces', namespaceSlots);

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

  /** Reviews in a lane. Equal reviews in flight are merged. */
  async function reviewIn(lane: Lane, key: string, user: UserInfo, attributes: Attributes): Promise<DatedDecision> {
    const { slots, inFlight } = lane;
    const current = inFlight.get(key);
    if (current !== undefined) return await current;
    const at = clock();
    const requested = slots
      .run(user.username, () => requestReview(user, attributes))
      .then((decision): DatedDecision => ({ decision, at }));
    inFlight.set(key, requested);
    let result: 'allowed' | 'denied' | 'error' = 'error';
    try {
      const reviewed = await requested;
      result = reviewed.decision.allowed ? 'allowed' : 'denied';
      return reviewed;
    } finally {
      accessReviews.observe({ result }, (clock() - at) / 1_000);
      inFlight.delete(key);
    }
  }

  function cached(key: string, maxAge: number): Decision | undefined {
    const found = decisions.get(key);
    if (found === undefined || clock() - found.at >= maxAge) return undefined;
    return found.decision;
  }

  return {
    allowsFromCache(user, attributes) {
      if (user.groups.includes(masters)) return true;
      // A cached denial is counted when `authorize` returns it.
      if (cached(decisionKey(user, attributes), maxDecisionAge)?.allowed !== true) return false;
      cachedDecisions.add({});
      return true;
    },
    async authorize(user, attributes, maxAge = maxDecisionAge) {
      if (user.groups.includes(masters)) return { allowed: true, reason: '' };
      const key = decisionKey(user, attributes);
      const known = cached(key, maxAge);
      if (known !== undefined) {
        cachedDecisions.add({});
        return known;
      }
      const reviewed = await reviewIn(maxAge < maxDecisionAge ? rechecks : requests, key, user, attributes);
      decisions.set(key, reviewed);
      return reviewed.decision;
    },
    review: (user, attributes) => reviewIn(namespaces, decisionKey(user, attributes), user, attributes),
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

/**
 * Returns a text that is equal only for equal users with equal requests. The text is a digest of 44 characters, because
 * BoundedCache would compute another digest of a longer key at each look-up.
 */
export const decisionKey = (user: UserInfo, attributes: Attributes): string =>
  hash('sha256', JSON.stringify([digestOf(user), ...keyPartsOf(attributes)]), 'base64');

function keyPartsOf(attributes: Attributes): readonly string[] {
  const { verb } = attributes;
  if ('path' in attributes) return [verb, attributes.path];
  const { group, resource, subresource = '', namespace = '', name = '' } = attributes;
  return [verb, group, resource, subresource, namespace, name];
}
