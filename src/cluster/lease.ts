/**
 * Leader election between replicas with a coordination.k8s.io/v1 Lease (k8s.io/client-go tools/leaderelection). Two
 * replicas may briefly both believe that they hold the Lease, so the work of the leader must tolerate that.
 */
import { repeat, rfc3339, type Clock } from '../runtime/time.ts';
import type { KubeClient } from './client/client.ts';
import type { KubeObject } from './client/kube-object.ts';
import type { Logger } from '../runtime/logger.ts';
import { Objects } from './objects.ts';

interface LeaseObject extends KubeObject {
  readonly spec: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

export interface LeaseOptions {
  readonly client: Pick<KubeClient, 'json'>;
  readonly namespace: string;
  readonly name: string;
  /** Name that is unique per replica. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const duration = 15_000;
const retryInterval = 5_000;

export class Lease {
  readonly #options: LeaseOptions;
  readonly #leases: Objects<LeaseObject>;
  readonly #clock: Clock;
  /**
   * Last observed version of the Lease and the local time of its first observation. Clocks of other machines are not
   * trusted.
   */
  #observed: { readonly version: string | undefined; readonly at: number } | undefined;
  #validUntil = 0;
  #failing = false;
  #trying: Promise<void> | undefined;
  readonly #stopped = new AbortController();

  constructor(options: LeaseOptions) {
    this.#options = options;
    const { client, namespace } = options;
    this.#leases = new Objects(client, `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`);
    this.#clock = options.clock;
  }

  start(): void {
    const run = (): Promise<void> => (this.#trying = this.#try());
    void run().then(() => repeat(this.#clock, retryInterval, this.#stopped.signal, run));
  }

  isHeld(): boolean {
    return !this.#stopped.signal.aborted && this.#clock.now() < this.#validUntil;
  }

  /** Releases the Lease, so that another replica need not wait until it expires. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    // The attempt in progress may acquire the Lease, or change the Lease between the read and the write below.
    await this.#trying;
    if (this.#clock.now() >= this.#validUntil) return;
    try {
      const { name, identity } = this.#options;
      const lease = await this.#leases.get(name);
      if (lease?.spec.holderIdentity === identity) await this.#leases.replace(this.#claimed(lease, ''));
    } catch {
      // If the release fails, the Lease expires.
    }
  }

  async #try(): Promise<void> {
    const { name, identity, log } = this.#options;
    const held = this.isHeld();
    const before = this.#clock.now();
    try {
      if (await this.#acquire()) this.#validUntil = before + duration;
      else this.#validUntil = 0;
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn('lease read or write failed', { name, error });
      this.#failing = true;
    }
    if (held !== this.isHeld()) log.info(held ? 'lease lost' : 'lease acquired', { name, identity });
  }

  /** Returns true if this replica now holds the Lease, false if another replica holds it or was faster. */
  async #acquire(): Promise<boolean> {
    const { name, namespace, identity } = this.#options;
    const lease = await this.#leases.get(name);
    if (lease === undefined) {
      const created = this.#claimed({ metadata: { name, namespace }, spec: {} }, identity);
      return await this.#leases.create(created);
    }
    const { holderIdentity = '' } = lease.spec;
    const { resourceVersion } = lease.metadata;
    const now = this.#clock.now();
    if (this.#observed?.version !== resourceVersion) this.#observed = { version: resourceVersion, at: now };
    const isFree =
      holderIdentity === '' || holderIdentity === identity || now - (this.#observed?.at ?? now) >= duration;
    return isFree && (await this.#leases.replace(this.#claimed(lease, identity)));
  }

  #claimed({ metadata, spec }: LeaseObject, identity: string): LeaseObject {
    // The times in a Lease are in the format metav1.MicroTime.
    const now = rfc3339(this.#clock.now()).replace('Z', '000Z');
    const isSame = spec.holderIdentity === identity;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata,
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: duration / 1_000,
        acquireTime: isSame ? (spec.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (spec.leaseTransitions ?? 0) + (isSame ? 0 : 1),
      },
    };
  }
}
