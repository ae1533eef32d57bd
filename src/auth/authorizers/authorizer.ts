import { forbidden, forbiddenPath } from '../../runtime/errors.ts';
import type { UserInfo } from '../user.ts';

/** What a caller wants to do, as a SubjectAccessReview names it. Core group, cluster scope and "no name" are ''. */
export interface ResourceAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** A URL that is no resource, such as /metrics; `verb` is the HTTP method in lower case. */
export interface PathAttributes {
  readonly verb: string;
  readonly path: string;
}

export type Attributes = ResourceAttributes | PathAttributes;

export interface Decision {
  readonly allowed: boolean;
  /** The authorizer's own words, '' if it has none. */
  readonly reason: string;
}

export interface Authorizer {
  /**
   * Decides whether the user is allowed to do that. Throws StatusError 503 when there is no decision; never allows by default.
   * `maxAge`: the greatest age of a cached decision, in milliseconds.
   */
  authorize(user: UserInfo, attributes: Attributes, maxAge?: number): Promise<Decision>;
}

/** Maximum age in milliseconds of a decision that the streams of a user share, which are rechecked together. */
const recheckAge = 1_000;

/** Returns the authorizer by which open streams are rechecked: its decisions are new, and one serves all streams of a user. */
export const rechecking = (authorizer: Authorizer): Authorizer => ({
  authorize: (user, attributes) => authorizer.authorize(user, attributes, recheckAge),
});

/** Throws 403 with kube-apiserver's own sentence unless the user may. */
export async function demand(authorizer: Authorizer, user: UserInfo, attributes: Attributes): Promise<void> {
  const { allowed, reason } = await authorizer.authorize(user, attributes);
  if (allowed) return;
  const why = reason === '' ? '' : `: ${reason}`;
  if ('path' in attributes)
    throw forbiddenPath(`User "${user.username}" cannot ${attributes.verb} path "${attributes.path}"${why}`);
  const { verb, group, resource, subresource = '', namespace = '', name = '' } = attributes;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  throw forbidden(
    { group, resource },
    name,
    `User "${user.username}" cannot ${verb} resource "${what}" in API group "${group}" ${scope}${why}`,
  );
}
