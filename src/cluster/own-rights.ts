import type { KubeClient } from './client/client.ts';
import type { Clock } from '../runtime/time.ts';

/** Milliseconds. Rights change while the server runs, and a kube-apiserver that is starting knows none. */
const maxReviewAge = 5_000;

/** Rights of this server's own ServiceAccount in the whole cluster (SelfSubjectAccessReview), reviewed again after 5 s. */
export class OwnRights {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #clock: Clock;
  /** By group and resource: no more than the cluster has. */
  readonly #answers = new Map<string, { readonly until: number; readonly answer: Promise<boolean> }>();

  constructor({ client, clock }: { client: Pick<KubeClient, 'json'>; clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Throws KubeError when the cluster cannot be asked. */
  async mayListAndWatch({ group, resource }: { readonly group: string; readonly resource: string }): Promise<boolean> {
    const key = `${resource}.${group}`;
    const kept = this.#answers.get(key);
    if (kept !== undefined && kept.until > this.#clock.now()) return await kept.answer;
    const answer = this.#review(group, resource);
    this.#answers.set(key, { until: this.#clock.now() + maxReviewAge, answer });
    try {
      return await answer;
    } catch (error) {
      this.#answers.delete(key);
      throw error;
    }
  }

  /** The cluster has refused what was allowed: ask again. */
  forget({ group, resource }: { readonly group: string; readonly resource: string }): void {
    this.#answers.delete(`${resource}.${group}`);
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
