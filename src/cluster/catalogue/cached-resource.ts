import { setImmediate as turn } from 'node:timers/promises';
import { InProgress } from '../../runtime/bounded-cache.ts';
import { isKubeError, KubeError, unreachable } from '../client/kube-error.ts';
import type { KubeClient, KubeRequest, KubeResponse } from '../client/client.ts';
import { sleep, systemClock, type Clock } from '../../runtime/time.ts';
import type { KubeObject } from '../client/kube-object.ts';
import { readBody } from '../../runtime/read-body.ts';
import { createRecall } from '../cache/recall.ts';
import { createReflector, metadataAs } from '../cache/reflector.ts';
import { sharedQuestion } from '../../runtime/in-progress.ts';
import type { ListMeta } from '../cache/split-list.ts';
import { ManagedFields } from '../cache/managed-fields.ts';
import { Store } from '../cache/store.ts';
import { storeObject, type StoredObject } from '../cache/stored-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import { collectionPath, type Resource, type ResourceDefinition } from './resource.ts';

export interface CacheFigures {
  readonly objects: number;
  /** Of the objects, outside the V8 heap. */
  readonly bytes: number;
  /** Milliseconds since the epoch; 0 before the first. */
  readonly lastSignOfLife: number;
}

export interface CachedResource<F> extends Resource<F> {
  start(): void;
  stop(): void;
  figures(): CacheFigures;
}

export interface CacheOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Told how many bytes are held, also while a list arrives; what it throws ends the copy. */
  readonly hold?: (bytes: number) => void;
  /** The cluster does not let us list or watch, or serves objects that are none: the copy will never be complete. */
  readonly refused?: (error: Error) => void;
  /** Called for a 403 after the first request. The right was revoked, or kube-apiserver is starting: it refuses all until it knows RBAC. */
  readonly doubted?: () => void;
  /** Called when kube-apiserver accepts a watch. */
  readonly accepted?: () => void;
}

/** The time that a change needs from kube-apiserver's answer to our copy, generously. */
const settleTime = 50;
const mostSettles = 200;
const never = new AbortController().signal;

export function createCached<F>(definition: ResourceDefinition<F>, options: CacheOptions): CachedResource<F> {
  const {
    client,
    log,
    clock = systemClock,
    hold = () => undefined,
    refused = () => undefined,
    doubted = () => undefined,
    accepted = () => undefined,
  } = options;
  const path = collectionPath(definition.underlying);
  const store = new Store<F>();
  const managedFields = new ManagedFields();
  let isFirstRequest = true;
  /** Objects are held that the store does not have yet. */
  let arriving = false;
  const reflector = createReflector<StoredObject<F>>({
    client: { stream: heeded },
    path,
    log,
    clock,
    decode,
    replace(items, resourceVersion) {
      store.replace(items, Number(resourceVersion));
      arriving = false;
      hold(store.bytes);
    },
    apply(type, object) {
      store.apply(type, object);
      arriving = false;
      hold(store.bytes);
    },
    bookmark: (resourceVersion) => store.bookmark(Number(resourceVersion)),
  });

  function decode(object: KubeObject, bytes: Buffer): StoredObject<F> {
    let stored: StoredObject<F>;
    try {
      stored = storeObject(object, bytes, {
        selfLink: ({ metadata: { namespace, name } }) => `${collectionPath(definition.underlying, namespace)}/${name}`,
        fields: (decoded) => definition.fields(decoded),
        managedFields,
      });
    } catch (error) {
      refused(error as Error);
      throw error;
    }
    arriving = true;
    store.hold(stored);
    hold(store.bytes);
    return stored;
  }

  /** A right that was taken away, and a resource that is gone, do not come back by asking on. */
  async function heeded(...request: Parameters<KubeClient['stream']>): Promise<KubeResponse> {
    const [, { query } = {}] = request;
    if (arriving && query?.['continue'] === undefined) {
      arriving = false;
      store.release();
      hold(store.bytes);
    }
    const isFirst = isFirstRequest;
    isFirstRequest = false;
    const response = await client.stream(...request);
    const { status } = response;
    if (status === 200 && query?.['watch'] !== undefined) accepted();
    else if (status === 403 && !isFirst) doubted();
    else if (status === 403 || status === 404 || status === 405)
      refused(new Error(`kube-apiserver answered ${status}`));
    return response;
  }

  /** The metadata of the one object, or of the list, that a path names. Throws KubeError. */
  async function metadataOf(of: string, query: KubeRequest['query'], kind: string): Promise<ListMeta> {
    const { status, body } = await client.stream(of, {
      ...(query === undefined ? {} : { query }),
      headers: { accept: metadataAs(kind) },
    });
    const text = (await readBody(body)).toString('utf8');
    if (status !== 200) throw KubeError.from(status, text);
    return (JSON.parse(text) as { metadata: ListMeta }).metadata;
  }

  const versionOf = async (...question: Parameters<typeof metadataOf>): Promise<number> =>
    Number((await metadataOf(...question)).resourceVersion);
  /** The resourceVersion of the cluster now. */
  const latest = sharedQuestion(() => versionOf(path, { limit: 1 }, 'PartialObjectMetadataList'));
  /** Of an object now, by its path. */
  const questions = new InProgress<{ readonly ask: () => Promise<number>; waiting: number }>('version_requests');
  async function latestOf(object: string): Promise<number> {
    let question = questions.get(object);
    if (question === undefined) {
      question = { ask: sharedQuestion(() => versionOf(object, undefined, 'PartialObjectMetadata')), waiting: 0 };
      questions.set(object, question);
    }
    question.waiting += 1;
    try {
      return await question.ask();
    } finally {
      question.waiting -= 1;
      if (question.waiting === 0) questions.delete(object);
    }
  }

  /** Resolves when the copy has reached a resourceVersion, or after so many milliseconds. */
  async function reachedWithin(resourceVersion: number, milliseconds: number): Promise<void> {
    const limit = new AbortController();
    const cancel = clock.after(milliseconds, () => limit.abort());
    await store.reached(resourceVersion, limit.signal);
    cancel();
  }

  /**
   * Waits until the copy has reached the cluster's resourceVersion. That number counts the changes of every resource, so the copy
   * of a quiet one does not see it before the next bookmark, up to a minute later: then it is enough that a watch is open and has
   * told nothing more for `settleTime`.
   */
  async function confirm(): Promise<void> {
    const target = await latest();
    for (let i = 0; i < mostSettles && store.resourceVersion < target; i += 1) {
      const watched = reflector.isWatching();
      await reachedWithin(target, settleTime);
      // What has arrived meanwhile is read before the timers' next turn.
      await turn();
      if (watched && reflector.isWatching()) return;
    }
    if (store.resourceVersion < target) throw unreachable(new Error(`the watch of ${path} is interrupted`));
  }

  /**
   * The other way round: a resourceVersion that a client has from another replica, or from the core API, is certain to be reached only
   * when the watch itself says so. The question makes kube-apiserver find out how far the resource is.
   */
  async function hurry(resourceVersion: number): Promise<void> {
    if ((await latest()) < resourceVersion) return;
    await sleep(clock, settleTime, never);
    if (store.resourceVersion < resourceVersion) reflector.hurry();
  }

  return {
    definition,
    store,
    hasSynced: () => reflector.hasSynced(),
    async waitForSync(signal) {
      if (!(await store.reached(1, signal))) throw signal.reason;
    },
    reach(resourceVersion, signal) {
      // Who cannot be asked cannot be hurried: it may come nevertheless.
      if (store.resourceVersion < resourceVersion) hurry(resourceVersion).catch(() => undefined);
      return store.reached(resourceVersion, signal);
    },
    recall: createRecall({ client, path, store, latest, log, clock }),
    confirm: (signal) => abortable(confirm(), signal),
    async confirmObject(namespace, name, signal) {
      const object = `${collectionPath(definition.underlying, namespace)}/${encodeURIComponent(name)}`;
      try {
        const target = await latestOf(object);
        const present = store.get(namespace, name);
        if (present !== undefined && present.resourceVersion >= target) return;
        if (!(await store.reached(target, signal))) throw signal.reason;
      } catch (error) {
        if (!isKubeError(error, 404)) throw error;
        // Its deletion is on the way, unless it has never been.
        if (store.get(namespace, name) !== undefined) await abortable(confirm(), signal);
      }
    },
    start: () => reflector.start(),
    stop: () => reflector.stop(),
    figures: () => ({ objects: store.size, bytes: store.bytes, lastSignOfLife: reflector.lastSignOfLife() }),
  };
}

/** The same promise, but rejected with the signal's reason as soon as that is aborted. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
