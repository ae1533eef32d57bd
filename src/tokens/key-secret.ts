/**
 * A Secret with keys that all replicas must hold alike: the first that finds none makes it, and each follows it from then on. Who
 * deletes it wants new keys, as when one may be known to others: those that are made then replace the old ones everywhere.
 */
import type { KubeClient } from '../cluster/client/client.ts';
import { repeat, type Clock } from '../runtime/time.ts';
import { ensure } from '../cluster/objects.ts';
import { isKubeError } from '../cluster/client/kube-error.ts';
import type { ObjectMeta } from '../cluster/client/kube-object.ts';
import { Informer } from '../cluster/cache/informer.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Secret } from '../cluster/secret-refs.ts';

/** The values under the keys of a Secret. */
export type KeyData = Readonly<Record<string, Buffer>>;

/** So often it is seen whether the Secret is there: one that could not be made when it was deleted is made then. */
const interval = 60_000;

/** Where the keys of all replicas are. */
export interface KeySource {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface KeySecretOptions extends KeySource {
  readonly name: string;
  readonly make: () => KeyData | Promise<KeyData>;
  /** Puts keys in force. Throws for what is none; those before stay in force then. */
  readonly use: (data: KeyData) => void;
}

export class KeySecret {
  readonly #options: KeySecretOptions;
  readonly #clock: Clock;
  readonly #collection: string;
  readonly #informer: Informer<Secret>;
  readonly #stopped = new AbortController();
  /** The resourceVersion of the keys in force. */
  #used: string | undefined;

  constructor(options: KeySecretOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#collection = `/api/v1/namespaces/${options.namespace}/secrets`;
    const { client, name, log } = options;
    this.#informer = new Informer<Secret>({
      client,
      path: this.#collection,
      fieldSelector: `metadata.name=${name}`,
      log,
      clock: this.#clock,
    });
    this.#informer.onChange((type, secret) => {
      if (type === 'DELETED') void this.#makeAgain();
      else this.#useOrKeep(secret);
    });
  }

  /** Reads the keys, or makes them, and follows them from then on. Throws if the Secret holds something else. */
  async start(): Promise<void> {
    this.#use(await this.#ensure());
    this.#informer.start();
    void repeat(this.#clock, interval, this.#stopped.signal, () => this.#look());
  }

  /**
   * Writes what `change` makes of what is in the cluster, unless somebody has changed that meanwhile; nothing for undefined. The watch
   * brings it, here as everywhere.
   */
  async change(change: (data: KeyData, metadata: ObjectMeta) => Promise<KeyData | undefined>): Promise<void> {
    const { client, namespace, name } = this.#options;
    const secret = this.#informer.get(namespace, name);
    if (secret === undefined) return;
    const data = await change(decoded(secret), secret.metadata);
    if (data === undefined) return;
    try {
      await client.json(`${this.#collection}/${name}`, { method: 'PUT', body: { ...secret, data: encoded(data) } });
    } catch (error) {
      if (!isKubeError(error, 409) && !isKubeError(error, 404)) throw error;
    }
  }

  stop(): void {
    this.#stopped.abort();
    this.#informer.stop();
  }

  #use(secret: Secret): void {
    const { resourceVersion } = secret.metadata;
    // The first list has what `start` has read.
    if (resourceVersion === this.#used) return;
    this.#options.use(decoded(secret));
    this.#used = resourceVersion;
  }

  #useOrKeep(secret: Secret): void {
    const { name, log } = this.#options;
    try {
      this.#use(secret);
    } catch (error) {
      log.error(`what Secret ${name} holds now is not used: the keys before it stay in force`, { error });
    }
  }

  async #look(): Promise<void> {
    const { namespace, name } = this.#options;
    if (this.#informer.hasSynced() && this.#informer.get(namespace, name) === undefined) await this.#makeAgain();
  }

  /** The watch brings what is made, here or by a replica that was faster: its order is the one that counts. */
  async #makeAgain(): Promise<void> {
    const { name, log } = this.#options;
    try {
      await this.#ensure();
      log.warn(`Secret ${name} was deleted: there are new keys`);
    } catch (error) {
      log.error(`Secret ${name} was deleted and cannot be made again now: the keys before it stay in force`, { error });
    }
  }

  async #ensure(): Promise<Secret> {
    const { client, namespace, name, make } = this.#options;
    return await ensure<Secret & { readonly type: string }>(client, this.#collection, name, async () => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace },
      type: 'Opaque',
      data: encoded(await make()),
    }));
  }
}

const decoded = ({ data = {} }: Secret): KeyData =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]));

const encoded = (data: KeyData): Record<string, string> =>
  Object.fromEntries(Object.entries(data).map(([key, bytes]) => [key, bytes.toString('base64')]));
