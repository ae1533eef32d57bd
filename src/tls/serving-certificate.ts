import type { LiveConfiguration } from '../config/live.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { Logger } from '../runtime/logger.ts';
import { Topic } from '../runtime/lifecycle.ts';
import { publishAuthority, publishCABundle } from './publish.ts';
import type { Serving, ServingSource } from './serving.ts';

/** Milliseconds between two reads of the certificate, after each of which its CA is published where it is missing. */
const interval = 30_000;

export interface ServingCertificateOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly live: Pick<LiveConfiguration, 'subscribe'>;
  readonly source: ServingSource;
  readonly log: Logger;
}

/** The certificate of the TLS listeners, kept up to date, and its CA, published in the cluster. */
export class ServingCertificate {
  readonly replaced = new Topic<Serving>();
  readonly #options: ServingCertificateOptions;
  #value: Serving | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#value = await this.#options.source();
    await this.#publish(this.#value);
    this.#timer = setInterval(() => void this.#refresh(), interval);
    this.#options.live.subscribe(() => void this.#refresh());
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Throws before the start. */
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
        log.info('the serving certificate was changed');
      }
      this.#value = next;
      await this.#publish(next);
    } catch (error) {
      log.warn('the serving certificate could not be looked at again', { error });
    }
  }

  async #publish({ ca, own }: Serving): Promise<void> {
    const { client, namespace, log } = this.#options;
    if (ca === undefined) return;
    await publishAuthority(client, namespace, ca);
    if (own) await publishCABundle(client, ca, log);
  }
}
