import type { LiveConfiguration } from '../config/live.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { Logger } from '../runtime/logger.ts';
import { Topic } from '../runtime/lifecycle.ts';
import { repeat, type Clock } from '../runtime/time.ts';
import { publishAuthority, publishCABundle } from './publish.ts';
import type { Serving, ServingSource } from './serving.ts';

/**
 * Approximate milliseconds between two reads of the certificate. After each read, the CA is published where it is
 * missing.
 */
const interval = 30_000;

export interface ServingCertificateOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly live: Pick<LiveConfiguration, 'subscribe'>;
  readonly source: ServingSource;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps the certificate of the TLS listeners up to date, and publishes its CA in the cluster. */
export class ServingCertificate {
  readonly replaced = new Topic<Serving>();
  readonly #options: ServingCertificateOptions;
  #value: Serving | undefined;
  readonly #stopped = new AbortController();

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#value = await this.#options.source();
    await this.#publish(this.#value);
    void repeat(this.#options.clock, interval, this.#stopped.signal, () => this.#refresh());
    this.#options.live.subscribe(() => void this.#refresh());
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** The current certificate. Throws before `start`. */
  get value(): Serving {
    if (this.#value === undefined) throw new Error('the serving certificate has not been read yet');
    return this.#value;
  }

  async #refresh(): Promise<void> {
    const { source, log } = this.#options;
    try {
      const before = this.#value;
      const next = await source();
      if (next.cert !== before?.cert) {
        this.replaced.publish(next);
        log.info('serving certificate changed');
      }
      this.#value = next;
      await this.#publish(next);
    } catch (error) {
      if (!this.#stopped.signal.aborted) log.warn('serving certificate refresh failed', { error });
    }
  }

  async #publish({ ca, own }: Serving): Promise<void> {
    const { client, namespace, log } = this.#options;
    if (ca === undefined) return;
    await publishAuthority(client, namespace, ca);
    if (own) await publishCABundle(client, ca, log);
  }
}
