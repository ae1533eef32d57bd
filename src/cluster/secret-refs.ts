/**
 * Secrets that the configuration refers to (`passwordRef`, `secretRef`), each watched by name.
 */
import type { KubeClient } from './client/client.ts';
import { Informer } from './cache/informer.ts';
import type { KubeObject } from './client/kube-object.ts';
import type { Logger } from '../runtime/logger.ts';
import { Topic } from '../runtime/lifecycle.ts';
import type { Clock } from '../runtime/time.ts';

export interface SecretKeyRef {
  readonly name: string;
  readonly key: string;
}

export interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** Returns the value of the key without the trailing newline that `echo` adds, or undefined if there is no value. */
export function secretValue(secret: Secret | undefined, key: string): string | undefined {
  const encoded = secret?.data?.[key];
  return encoded === undefined
    ? undefined
    : Buffer.from(encoded, 'base64')
        .toString('utf8')
        .replace(/\r?\n$/, '');
}

export class SecretRefs {
  /** Signals that one of the Secrets has changed, or that all of them have been read. */
  readonly changed = new Topic();
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #informers = new Map<string, Informer<Secret>>();

  constructor(options: { client: KubeClient; namespace: string; clock: Clock; log: Logger }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Sets the names of the watched Secrets. */
  follow(names: ReadonlySet<string>): void {
    for (const [name, informer] of this.#informers)
      if (!names.has(name)) {
        this.#informers.delete(name);
        informer.stop();
      }
    for (const name of names) {
      if (this.#informers.has(name)) continue;
      const informer = new Informer<Secret>({
        client: this.#client,
        path: `/api/v1/namespaces/${this.#namespace}/secrets`,
        fieldSelector: `metadata.name=${name}`,
        clock: this.#clock,
        log: this.#log,
      });
      informer.onChange(() => this.changed.publish());
      informer.start();
      this.#informers.set(name, informer);
      // A missing Secret causes no change event.
      void this.#publishRead(informer);
    }
  }

  async #publishRead(informer: Informer<Secret>): Promise<void> {
    await informer.waitForSync();
    if (this.hasSynced()) this.changed.publish();
  }

  /**
   * Resolves when every watched Secret has been read once. Throws the signal's reason if the signal is aborted first.
   */
  async settled(signal?: AbortSignal): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.waitForSync(signal)));
  }

  /**
   * Returns true once every watched Secret has been read. From then on, `read` returns undefined only for a missing
   * value.
   */
  hasSynced(): boolean {
    return [...this.#informers.values()].every((informer) => informer.hasSynced());
  }

  /** Returns a message that explains why the value is missing, or undefined if there is a value. */
  problemOf({ name, key }: SecretKeyRef): string | undefined {
    const secret = this.#informers.get(name)?.get(this.#namespace, name);
    if (secret === undefined) return `Secret "${name}" not found in namespace "${this.#namespace}"`;
    const value = secretValue(secret, key);
    if (value === undefined) return `Secret "${name}" has no key "${key}"`;
    return value === '' ? `key "${key}" of Secret "${name}" is empty` : undefined;
  }

  /** Returns the value; undefined if it is missing or its Secret has not been read yet. */
  read({ name, key }: SecretKeyRef): string | undefined {
    return secretValue(this.#informers.get(name)?.get(this.#namespace, name), key);
  }

  stop(): void {
    for (const informer of this.#informers.values()) informer.stop();
  }
}
