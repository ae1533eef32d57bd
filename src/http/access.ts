/**
 * The authentication and rights that a route requires. Filters enforce them, and API descriptions derive `security` and
 * errors from them.
 */
export type Access =
  /** Filters authenticate no caller. A handler can still read credentials, such as the cookie of a page. */
  | { readonly kind: 'anonymous' }
  /**
   * The caller is authenticated only if the query has `parameter`. A caller with valid credentials then needs the right
   * to the path; invalid credentials are ignored.
   */
  | { readonly kind: 'optional'; readonly parameter: string }
  /** The handler of an OAuth endpoint authenticates the client or the token and reports failures as OAuth errors. */
  | { readonly kind: 'client'; readonly schemes: readonly ('bearer' | 'client')[] }
  /**
   * Authentication is required. `rights` names the function of the route that checks further rights. `handler` is for
   * rights that depend on the parsed query, or that kube-apiserver checks. `passwordChange` also allows users who must
   * change their password, unless the path names another user.
   */
  | {
      readonly kind: 'authenticated';
      readonly rights: 'none' | 'authorize' | 'handler';
      readonly passwordChange?: boolean;
    }
  /** The caller must be authenticated and have the right to the path, or to the resource that the path names. */
  | { readonly kind: 'authorized'; readonly rights: 'path' | 'resource' };

export const anonymous = { kind: 'anonymous' } as const satisfies Access;
/** Available to all authenticated callers. */
export const authenticated = { kind: 'authenticated', rights: 'none' } as const satisfies Access;
export const authorizedByRoute = { kind: 'authenticated', rights: 'authorize' } as const satisfies Access;
export const authorizedByHandler = { kind: 'authenticated', rights: 'handler' } as const satisfies Access;
export const authorizedByPath = { kind: 'authorized', rights: 'path' } as const satisfies Access;
export const authorizedByResource = { kind: 'authorized', rights: 'resource' } as const satisfies Access;

export const needsIdentity = ({ kind }: Access): boolean => kind === 'authenticated' || kind === 'authorized';

const byStrictness: readonly Access['kind'][] = ['anonymous', 'client', 'optional', 'authenticated', 'authorized'];

/** Returns the access that a request requires if routes serve its path, but none of them serves its method. */
export function strictest(all: readonly Access[]): Access {
  const access = all.toSorted((a, b) => byStrictness.indexOf(b.kind) - byStrictness.indexOf(a.kind))[0];
  // `passwordChange` applies only to the method of its own route.
  return access?.kind === 'authenticated' ? authenticated : (access ?? authorizedByPath);
}
