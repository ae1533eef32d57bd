/**
 * A Secret with keys that all replicas share. The first replica creates it, and all replicas watch it. An administrator
 * deletes the Secret to replace keys that may be compromised. A replica then creates new keys, which replace the old
 * ones on all replicas.
 */
import type { KubeClient } from '../cluster/client/client.ts';
import { repeat, type Clock } from '../runtime/time.ts';
import { ensure } from '../cluster/objects.ts';
import { isKubeError } from '../cluster/client/kube-error.ts';
import type { ObjectMeta } from '../cluster/client/kube-object.ts';
import { Informer } from '../cluster/cache/informer.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Secret } from '../cluster/secret-refs.ts';

/** Decoded `data` of a Secret. */
export type KeyData = Readonly<Record<string, Buffer>>;

/**
 * Milliseconds between checks that the Secret exists. A check creates a deleted Secret again if the attempt after its
 * deletion failed.
 */
const interval = 60_000;

/** Namespace of the shared keys, and the client that reads and writes them. */
export interface KeySource {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface KeySecretOptions extends KeySource {
  readonly name: string;
  readonly make: () => KeyData | Promise<KeyData>;
  /** Applies new keys. Throws if the data is invalid. The previous keys then stay in use. */
  readonly use: (data: KeyData) => void;
}

export class KeySecret {
  readonly #options: KeySecretOptions;
  readonly #clock: Clock;
  readonly #collection: string;
  readonly #informer: Informer<Secret>;
  readonly #stopped = new AbortController();
  /** The resourceVersion of the keys in use. */
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
      if (type === 'DELETED') void this.#recreate();
      else this.#useIfValid(secret);
    });
  }

  /** Reads or creates the Secret, then watches it. Throws if its data is invalid. */
  async start(): Promise<void> {
    this.#use(await this.#ensure());
    this.#informer.start();
    void repeat(this.#clock, interval, this.#stopped.signal, () => this.#recreateIfMissing());
  }

  /**
   * Writes the data that `change` returns, unless `change` returns undefined or the Secret was changed in the meantime.
   * Like all other replicas, this replica applies the change when its watch delivers it.
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
    // The first list of the watch delivers the data that `start` has already applied.
    if (resourceVersion === this.#used) return;
    this.#options.use(decoded(secret));
    this.#used = resourceVersion;
  }

  #useIfValid(secret: Secret): void {
    const { name, log } = this.#options;
    try {
      this.#use(secret);
    } catch (error) {
      log.error('Secret with keys is invalid; the previous keys stay in use', { name, error });
    }
  }

  async #recreateIfMissing(): Promise<void> {
    const { namespace, name } = this.#options;
    if (this.#informer.hasSynced() && this.#informer.get(namespace, name) === undefined) await this.#recreate();
  }

  /**
   * Creates the Secret again. Does not apply the new keys, because the watch delivers them in order, whichever replica
   * created them.
   */
  async #recreate(): Promise<void> {
    const { name, log } = this.#options;
    try {
      await this.#ensure();
      log.warn('Secret with keys was deleted; new keys were created', { name });
    } catch (error) {
      log.error('Secret with keys was deleted and could not be recreated; the previous keys stay in use', {
        name,
        error,
      });
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
