import type { Route } from '../http/route.ts';

/** One thing that is served, and what the metadata tells clients of it. */
export interface OAuthEndpoint {
  readonly routes: readonly Route[];
  /** Members of RFC 8414 section 2. `at` makes the URL of a path, from the issuer. */
  metadata(at: (path: string) => string): Readonly<Record<string, unknown>>;
}
