import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../../runtime/logger.ts';
import { untilAborted } from '../../runtime/promises.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import type { ObjectMembers } from '../cache/json-scan.ts';
import { createRecall } from '../cache/recall.ts';
import { Reflector } from '../cache/reflector.ts';
import { ManagedFields } from '../cache/managed-fields.ts';
import { Store } from '../cache/store.ts';
import { storeObject, type StoredObject } from '../cache/stored-object.ts';
import type { KubeClient, KubeRequest, KubeResponse } from '../client/client.ts';
import { isKubeError, unreachable } from '../client/kube-error.ts';
import type { KubeObject } from '../client/kube-object.ts';
import { collectionPath, type Resource, type ResourceDefinition } from './resource.ts';
import { VersionRequests } from './version-requests.ts';

export interface CacheFigures {
  readonly objects: number;
  /** Bytes of the objects, including an estimate of their index. */
  readonly bytes: number;
  /** Time of the last data from kube-apiserver, in milliseconds since the epoch; 0 before any data has arrived. */
  readonly lastSignOfLife: number;
}

export interface CacheOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * Called with the bytes in use, including the bytes of a list that is still arriving. If the function throws, the
   * list or watch is interrupted.
   */
  readonly hold?: (bytes: number) => void;
  /**
   * Called when the cluster forbids the first list or watch, does not serve the resource, or sends malformed objects.
   */
  readonly refused?: (error: Error) => void;
  /**
   * Called after a later 403: the right was revoked, or kube-apiserver is starting and refuses everything until it has
   * loaded RBAC.
   */
  readonly forbidden?: () => void;
  /** Called when kube-apiserver accepts a watch. */
  readonly accepted?: () => void;
}

/** Milliseconds within which a change arrives in the cache after kube-apiserver has reported it in another response. */
const settleTime = 50;
const maxSettles = 200;
const never = new AbortController().signal;

/** Cache of one resource, which a reflector keeps current. */
export class CachedResource<F> implements Resource<F> {
  readonly definition: ResourceDefinition<F>;
  readonly store = new Store<F>();
  readonly ended: AbortSignal;
  readonly recall: Resource<F>['recall'];
  readonly #options: CacheOptions;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #reflector: Reflector<StoredObject<F>>;
  readonly #versions: VersionRequests;
  readonly #managedFields = new ManagedFields();
  readonly #end = new AbortController();
  #isFirstRequest = true;
  /** True if the arena contains objects of an incomplete list, which are not in the store yet. */
  #isListing = false;

  constructor(definition: ResourceDefinition<F>, options: CacheOptions) {
    const { client, log, clock } = options;
    this.definition = definition;
    this.ended = this.#end.signal;
    this.#options = options;
    this.#clock = clock;
    this.#path = collectionPath(definition.underlying);
    this.#versions = new VersionRequests(client, this.#path);
    this.#reflector = new Reflector<StoredObject<F>>({
      client: { stream: (...request) => this.#stream(...request) },
      path: this.#path,
      log,
      clock,
      unreadStatus: definition.unreadStatus,
      decode: (object, bytes, members) => this.#decode(object, bytes, members),
      replace: (items, version) => this.#update(() => this.store.replace(items, Number(version))),
      apply: (type, object) => this.#update(() => this.store.apply(type, object)),
      bookmark: (version) => this.store.bookmark(Number(version)),
    });
    const latest = this.#versions.ofCollection;
    this.recall = createRecall({ client, path: this.#path, history: this.store.history, latest, log, clock });
  }

  start(): void {
    this.#reflector.start();
  }

  /** Stops the reflector, and ends the watches of clients with the reason. */
  stop(reason: Error): void {
    this.#reflector.stop();
    this.#end.abort(reason);
  }

  hasSynced(): boolean {
    return this.#reflector.hasSynced();
  }

  async waitForSync(signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, this.ended]);
    if (!(await this.store.waitFor(1, either))) throw either.reason;
  }

  reach(resourceVersion: number, signal: AbortSignal): Promise<boolean> {
    // Ignores errors, because the change may still arrive.
    if (this.store.resourceVersion < resourceVersion) this.#requestBookmark(resourceVersion).catch(() => undefined);
    return this.store.waitFor(resourceVersion, signal);
  }

  confirm(signal: AbortSignal): Promise<void> {
    return untilAborted(this.#confirm(), signal);
  }

  async confirmObject(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    const path = `${collectionPath(this.definition.underlying, namespace)}/${encodeURIComponent(name)}`;
    try {
      const version = await this.#versions.ofObject(path);
      const present = this.store.get(namespace, name);
      if (present !== undefined && present.resourceVersion >= version) return;
      if (!(await this.store.waitFor(version, signal))) throw signal.reason;
    } catch (error) {
      if (!isKubeError(error, 404)) throw error;
      // The deletion has not arrived yet.
      if (this.store.get(namespace, name) !== undefined) await this.confirm(signal);
    }
  }

  figures(): CacheFigures {
    return { objects: this.store.size, bytes: this.#bytes, lastSignOfLife: this.#reflector.lastSignOfLife() };
  }

  get #bytes(): number {
    return this.store.bytes + this.#managedFields.bytes;
  }

  /** Sends a request of the reflector. Reports refusals that a retry does not change: a missing right or resource. */
  async #stream(path: string, request: KubeRequest = {}): Promise<KubeResponse> {
    const { client, accepted, forbidden, refused } = this.#options;
    const { query = {} } = request;
    if (query['continue'] === undefined) this.#releaseListed();
    const isFirst = this.#isFirstRequest;
    this.#isFirstRequest = false;
    const response = await client.stream(path, request);
    const { status } = response;
    if (status === 200 && query['watch'] !== undefined) accepted?.();
    else if (status === 403 && !isFirst) forbidden?.();
    else if ([403, 404, 405].includes(status)) refused?.(new Error(`kube-apiserver responded with ${status}`));
    return response;
  }

  /** Releases the objects of an interrupted list. */
  #releaseListed(): void {
    if (this.#isListing) this.#update(() => this.store.release());
  }

  #update(change: () => void): void {
    change();
    this.#isListing = false;
    this.#options.hold?.(this.#bytes);
  }

  #decode(object: KubeObject, bytes: Buffer, members: ObjectMembers): StoredObject<F> {
    const stored = this.#stored(object, bytes, members);
    this.#isListing = true;
    this.store.hold(stored);
    this.#options.hold?.(this.#bytes);
    return stored;
  }

  #stored(object: KubeObject, bytes: Buffer, members: ObjectMembers): StoredObject<F> {
    const { underlying } = this.definition;
    const options = {
      selfLink: ({ metadata: { namespace, name } }: KubeObject) => `${collectionPath(underlying, namespace)}/${name}`,
      fields: (decoded: KubeObject) => this.definition.fields(decoded),
      managedFields: this.#managedFields,
    };
    try {
      return storeObject(object, bytes, options, members);
    } catch (error) {
      this.#options.refused?.(error as Error);
      throw error;
    }
  }

  /**
   * Waits until the cache has reached the resourceVersion of the cluster. A resourceVersion counts the changes of every
   * resource. The cache of a resource that rarely changes therefore reaches the cluster's version only with the next
   * bookmark, up to a minute later. An open watch that has received nothing for `settleTime` therefore suffices too.
   */
  async #confirm(): Promise<void> {
    const version = await this.#versions.ofCollection();
    for (let i = 0; i < maxSettles && this.store.resourceVersion < version; i += 1) {
      const watch = this.#reflector.openWatch();
      const { resourceVersion } = this.store;
      await this.#waitUpTo(version, settleTime);
      // Lets the event loop read events that have arrived before it runs the timers again. A response body passes them
      // on at the end of the first turn.
      await nextTurn();
      await nextTurn();
      const isSilent = this.store.resourceVersion === resourceVersion;
      if (watch > 0 && watch === this.#reflector.openWatch() && isSilent) return;
    }
    if (this.store.resourceVersion < version)
      throw unreachable(new Error(`the watch of ${this.#path} was interrupted`));
  }

  /** Resolves when the cache has reached a resourceVersion, or after `milliseconds`. */
  async #waitUpTo(resourceVersion: number, milliseconds: number): Promise<void> {
    const limit = new AbortController();
    const cancel = this.#clock.after(milliseconds, () => limit.abort());
    await this.store.waitFor(resourceVersion, limit.signal);
    cancel();
  }

  /**
   * Requests a bookmark if the cluster has reached a resourceVersion that a client received from another replica or the
   * core API. Only the watch can prove that the cache has reached that version. The first request makes kube-apiserver
   * fetch the latest resourceVersion.
   */
  async #requestBookmark(resourceVersion: number): Promise<void> {
    if ((await this.#versions.ofCollection()) < resourceVersion) return;
    await sleep(this.#clock, settleTime, never);
    if (this.store.resourceVersion < resourceVersion) this.#reflector.requestBookmark();
  }
}
