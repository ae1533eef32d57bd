import { forbidden, forbiddenPath } from '../../runtime/errors.ts';
import type { UserInfo } from '../user.ts';

/**
 * Attributes of a request for a resource, as in a SubjectAccessReview. The core group, cluster scope and "no name" are
 * ''.
 */
export interface ResourceAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Attributes of a non-resource request, such as /metrics. `verb` is the HTTP method in lower case. */
export interface PathAttributes {
  readonly verb: string;
  readonly path: string;
}

export type Attributes = ResourceAttributes | PathAttributes;

export interface Decision {
  readonly allowed: boolean;
  /** Explanation of the authorizer; '' if it gives none. */
  readonly reason: string;
}

export interface Authorizer {
  /**
   * Returns true if a cached decision allows the request. Otherwise, and if this method is missing, `authorize` decides.
   */
  allowsFromCache?(user: UserInfo, attributes: Attributes): boolean;
  /**
   * Decides whether the user is allowed to make the request. Throws StatusError 503 if there is no decision, and never
   * allows by default. `maxAge` is the maximum age of a cached decision in milliseconds.
   */
  authorize(user: UserInfo, attributes: Attributes, maxAge?: number): Promise<Decision>;
}

/** Decision of an access review, and its time. */
export interface DatedDecision {
  readonly decision: Decision;
  /** Monotonic time at which the review was requested, in milliseconds. */
  readonly at: number;
}

export interface AccessReviews extends Authorizer {
  /**
   * Reviews the access without the cache, and with slots for large numbers of reviews. The caller caches the decision.
   * Throws like `authorize`.
   */
  review(user: UserInfo, attributes: ResourceAttributes): Promise<DatedDecision>;
}

/**
 * Maximum age of a decision in a recheck, in milliseconds. The streams of a user are rechecked together and share the
 * decision.
 */
const recheckAge = 1_000;

/**
 * Returns an authorizer for rechecks of open streams. Caches each decision for `recheckAge`, so that the streams of a
 * user share it. It has no `allowsFromCache`, because the decisions of that method may be older.
 */
export const rechecking = (authorizer: Authorizer): Authorizer => ({
  authorize: (user, attributes) => authorizer.authorize(user, attributes, recheckAge),
});

/**
 * Throws 403 with kube-apiserver's message unless the user is allowed to make the request. Returns a promise only if no
 * cached decision allows the request.
 */
export const assertAllowed = (authorizer: Authorizer, user: UserInfo, attributes: Attributes): void | Promise<void> =>
  authorizer.allowsFromCache?.(user, attributes) === true ? undefined : assertReviewed(authorizer, user, attributes);

async function assertReviewed(authorizer: Authorizer, user: UserInfo, attributes: Attributes): Promise<void> {
  const { allowed, reason } = await authorizer.authorize(user, attributes);
  if (allowed) return;
  const explanation = reason === '' ? '' : `: ${reason}`;
  if ('path' in attributes)
    throw forbiddenPath(`User "${user.username}" cannot ${attributes.verb} path "${attributes.path}"${explanation}`);
  const { verb, group, resource, subresource = '', namespace = '', name = '' } = attributes;
  const target = subresource === '' ? resource : `${resource}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  throw forbidden(
    { group, resource },
    name,
    `User "${user.username}" cannot ${verb} resource "${target}" in API group "${group}" ${scope}${explanation}`,
  );
}
