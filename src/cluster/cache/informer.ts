import type { Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import { visitInSlices } from '../../runtime/slice.ts';
import type { ChangeType, KubeObject } from '../client/kube-object.ts';
import type { Collection } from './list-watch.ts';
import { Reflector } from './reflector.ts';
import { SharedStrings } from './shared-strings.ts';
import { Synced } from './synced.ts';

type ChangeListener<T> = (type: ChangeType, object: T) => void;

export interface InformerOptions extends Collection {
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * See ReflectorOptions. Bookmarks update `lastSignOfLife` only about once a minute. Shorter watches update
   * `lastSignOfLife` more often.
   */
  readonly watchSeconds?: number;
}

/**
 * Returns a function for the keys of a collection's objects. In a collection of one namespace, the key is the name,
 * which needs no memory of its own. 100,000 keys with a namespace would take 7 MB.
 */
function keysIn(path: string): (object: KubeObject) => string {
  const only = /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? '';
  return ({ metadata: { namespace = '', name } }) => (namespace === only ? name : `${namespace}/${name}`);
}

/**
 * Cache of the decoded objects of a small resource, updated by a watch (client-go's SharedInformer). Callers must not
 * modify the objects.
 */
export class Informer<T extends KubeObject> {
  readonly #options: InformerOptions;
  readonly #keyOf: (object: KubeObject) => string;
  readonly #objects = new Map<string, T>();
  readonly #listeners: ChangeListener<T>[] = [];
  readonly #synced = new Synced();
  readonly #reflector: Reflector<T>;

  constructor(options: InformerOptions) {
    this.#options = options;
    this.#keyOf = keysIn(options.path);
    const strings = new SharedStrings();
    this.#reflector = new Reflector<T>({
      ...options,
      decode: (object) => strings.share(object) as T,
      replace: (items, _, stopped) => this.#replace(items, stopped),
      apply: (type, object) => this.#change(type, object),
    });
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): void {
    this.#reflector.stop();
  }

  /** Returns true once the first list is complete. */
  hasSynced(): boolean {
    return this.#synced.done;
  }

  /** Resolves when the first list is complete. Throws the signal's reason if the signal is aborted first. */
  waitForSync(signal?: AbortSignal): Promise<void> {
    return this.#synced.wait(signal);
  }

  /** `namespace` is '' at cluster scope. */
  get(namespace: string, name: string): T | undefined {
    return this.#objects.get(this.#keyOf({ metadata: { namespace, name } }));
  }

  get size(): number {
    return this.#objects.size;
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  /**
   * Calls the listener for each change, including the objects of the first list (ADDED) and the differences found by a
   * later list. For DELETED, the listener gets the last known version of the object. If a listener throws, the error is
   * logged and the other listeners are still called.
   */
  onChange(listener: ChangeListener<T>): void {
    this.#listeners.push(listener);
  }

  /** Time of the last data from kube-apiserver, in milliseconds since the epoch; 0 before any data has arrived. */
  lastSignOfLife(): number {
    return this.#reflector.lastSignOfLife();
  }

  /** Works in slices, because there may be 100,000 objects. Until the end, some objects are from before the list. */
  async #replace(items: readonly T[], signal: AbortSignal): Promise<void> {
    const present = new Set<string>();
    await visitInSlices(items, { signal }, (object) => present.add(this.#keyOf(object)));
    await visitInSlices(this.#objects, { signal }, ([key, object]) => {
      if (!present.has(key)) this.#change('DELETED', object);
    });
    await visitInSlices(items, { signal }, (object) => this.#change('ADDED', object));
    this.#synced.set();
  }

  #change(type: ChangeType, object: T): void {
    const key = this.#keyOf(object);
    const previous = this.#objects.get(key);
    if (type === 'DELETED') {
      this.#objects.delete(key);
      if (previous !== undefined) this.#publish('DELETED', object);
      return;
    }
    this.#objects.set(key, object);
    if (previous === undefined) this.#publish('ADDED', object);
    else if (previous.metadata.uid !== object.metadata.uid) {
      this.#publish('DELETED', previous);
      this.#publish('ADDED', object);
    } else if (previous.metadata.resourceVersion !== object.metadata.resourceVersion) this.#publish('MODIFIED', object);
  }

  #publish(type: ChangeType, object: T): void {
    for (const listener of this.#listeners) {
      try {
        listener(type, object);
      } catch (error) {
        const { log, path } = this.#options;
        log.error('informer listener failed', { path, error });
      }
    }
  }
}
