import type { Logger } from '../../runtime/logger.ts';
import type { KubeClient } from '../client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { keyOf, type ChangeType, type KubeObject } from '../client/kube-object.ts';
import { createReflector } from './reflector.ts';
import { Synced } from './synced.ts';

export type { KubeObject } from '../client/kube-object.ts';

export type ChangeListener<T> = (type: ChangeType, object: T) => void;

/** A decoded copy of a small resource, kept current by a watch. Its objects are shared: never alter one. */
export interface Informer<T extends KubeObject> {
  start(): void;
  stop(): void;
  /** The first list is complete. */
  hasSynced(): boolean;
  /** Resolves when `hasSynced`; throws the signal's reason when that is aborted before. */
  waitForSync(signal?: AbortSignal): Promise<void>;
  /** `namespace` is '' at cluster scope. */
  get(namespace: string, name: string): T | undefined;
  list(): T[];
  /**
   * Called for each change, also for the objects of the first list (ADDED) and for what a later list shows to have changed. A
   * DELETED object is the last state that was seen. Returns what ends the calls.
   */
  onChange(listener: ChangeListener<T>): () => void;
  /** When kube-apiserver last sent anything, in milliseconds since the epoch; 0 before the first time. */
  lastSignOfLife(): number;
}

export interface InformerOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  /** Of the collection, such as /api/v1/namespaces/platform-system/configmaps. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly log: Logger;
  readonly clock?: Clock;
  /** How long one watch lasts, see ReflectorOptions: for those who need `lastSignOfLife` fresher than the minute of a bookmark. */
  readonly watchSeconds?: number;
}

/** client-go's shared informer, with the reflector's robustness. A listener that throws is logged and does not stop the others. */
export function createInformer<T extends KubeObject>(options: InformerOptions): Informer<T> {
  const { log, path } = options;
  const objects = new Map<string, T>();
  const listeners = new Set<ChangeListener<T>>();
  const synced = new Synced();

  function tell(type: ChangeType, object: T): void {
    for (const listener of listeners) {
      try {
        listener(type, object);
      } catch (error) {
        log.error('a listener of an informer failed', { path, error });
      }
    }
  }

  function change(type: ChangeType, object: T): void {
    const key = keyOf(object);
    const previous = objects.get(key);
    if (type === 'DELETED') {
      objects.delete(key);
      if (previous !== undefined) tell('DELETED', object);
      return;
    }
    objects.set(key, object);
    if (previous === undefined) tell('ADDED', object);
    else if (previous.metadata.uid !== object.metadata.uid) {
      tell('DELETED', previous);
      tell('ADDED', object);
    } else if (previous.metadata.resourceVersion !== object.metadata.resourceVersion) tell('MODIFIED', object);
  }

  function replace(items: readonly T[]): void {
    const present = new Set(items.map(keyOf));
    for (const [key, object] of objects) if (!present.has(key)) change('DELETED', object);
    for (const object of items) change('ADDED', object);
    synced.set();
  }

  const reflector = createReflector<T>({
    ...options,
    decode: (object) => object as T,
    replace,
    apply: change,
    bookmark: () => undefined,
  });

  return {
    start: () => reflector.start(),
    stop: () => reflector.stop(),
    hasSynced: () => reflector.hasSynced(),
    waitForSync: (signal) => synced.wait(signal),
    get: (namespace, name) => objects.get(keyOf({ metadata: { namespace, name } })),
    list: () => [...objects.values()],
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    lastSignOfLife: () => reflector.lastSignOfLife(),
  };
}
