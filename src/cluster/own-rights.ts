import type { KubeClient } from './client/client.ts';
import type { Clock } from '../runtime/time.ts';

/**
 * Milliseconds for which a review is cached. Rights change while the server runs, and a starting kube-apiserver has not
 * loaded all roles yet.
 */
const maxReviewAge = 5_000;

/** Cluster-wide rights of this server's own ServiceAccount (SelfSubjectAccessReview), cached for 5 s. */
export class OwnRights {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #clock: Clock;
  /** Reviews by group and resource. The number of resources in the cluster limits the number of reviews. */
  readonly #reviews = new Map<string, { readonly expiry: number; readonly isAllowed: Promise<boolean> }>();

  constructor({ client, clock }: { client: Pick<KubeClient, 'json'>; clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Returns whether this server is allowed to list and watch a resource. Throws KubeError if the review fails. */
  async mayListAndWatch({ group, resource }: { readonly group: string; readonly resource: string }): Promise<boolean> {
    const key = `${resource}.${group}`;
    const cached = this.#reviews.get(key);
    if (cached !== undefined && cached.expiry > this.#clock.now()) return await cached.isAllowed;
    const isAllowed = this.#review(group, resource);
    this.#reviews.set(key, { expiry: this.#clock.now() + maxReviewAge, isAllowed });
    try {
      return await isAllowed;
    } catch (error) {
      this.#reviews.delete(key);
      throw error;
    }
  }

  /** Drops the cached review after kube-apiserver refused a request that the review allowed. */
  forget({ group, resource }: { readonly group: string; readonly resource: string }): void {
    this.#reviews.delete(`${resource}.${group}`);
  }

  async #review(group: string, resource: string): Promise<boolean> {
    const reviews = await Promise.all(
      ['list', 'watch'].map((verb) =>
        this.#client.json<{ status?: { allowed?: boolean; denied?: boolean } }>(
          '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
          {
            method: 'POST',
            body: {
              apiVersion: 'authorization.k8s.io/v1',
              kind: 'SelfSubjectAccessReview',
              spec: { resourceAttributes: { verb, group, resource, version: '*' } },
            },
          },
        ),
      ),
    );
    return reviews.every(({ status }) => status?.allowed === true && status.denied !== true);
  }
}
