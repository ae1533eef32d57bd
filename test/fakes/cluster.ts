import { PassThrough, Readable } from 'node:stream';
import type { Cluster, ServerIdentity, KubeRequest, KubeResponse } from '../../src/cluster/client/client.ts';
import { systemClock, type Clock } from '../../src/runtime/time.ts';
import { KubeError, unreachable } from '../../src/cluster/client/kube-error.ts';
import type { ChangeType, KubeObject } from '../../src/cluster/client/kube-object.ts';
import { FakePodLogs } from './pod-logs.ts';
import { upstreamAt } from './upstream.ts';
import type { Upstream } from '../../src/cluster/client/upstream.ts';

type Stored = KubeObject & Record<string, unknown>;
type Json = Readonly<Record<string, unknown>>;

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  readonly headers?: KubeRequest['headers'];
  readonly contentType?: string | undefined;
}

interface ClusterResponse {
  readonly status: number;
  readonly body: unknown;
}

interface Change {
  readonly version: number;
  readonly type: ChangeType;
  readonly object: Stored;
}

interface Watcher {
  readonly collection: string;
  readonly fieldSelector: unknown;
  readonly report: (type: ChangeType, object: Stored) => void;
}

const failure = (code: number, reason: string, message: string): ClusterResponse => ({
  status: code,
  body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, message, code },
});

/** A watch sends its last bookmark this number of milliseconds before it ends. */
const lastBookmark = 2_000;

const copy = <T>(value: T): T => structuredClone(value);

/** Applies a merge patch (RFC 7386). */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = typeof target === 'object' && target !== null ? { ...target } : {};
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  return merged;
}

interface Addition {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

/**
 * Applies a JSON patch (RFC 6902) that contains only `add` operations. Returns undefined if the path does not exist.
 */
function jsonPatch(target: Stored, additions: readonly Addition[]): Stored | undefined {
  const patched = copy(target) as Json;
  for (const { op, path, value } of additions) {
    if (op !== 'add') throw new Error(`no ${op} here`);
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    let at: unknown = patched;
    for (const key of keys.slice(0, -1)) at = (at as Json | undefined)?.[key];
    if (typeof at !== 'object' || at === null) return undefined;
    const last = keys.at(-1) ?? '';
    if (Array.isArray(at)) at.splice(Number(last), 0, value);
    else (at as Record<string, unknown>)[last] = value;
  }
  return patched as Stored;
}

/**
 * An in-memory kube-apiserver with the operations that this server uses: get, list, watch (including streaming lists),
 * create, update with compare-and-swap, merge patch, additions by JSON patch, delete with preconditions. `respond`
 * serves POST requests that store nothing. Each replica has its own client with its own faults.
 */
export class MemoryCluster {
  readonly clock: Clock;
  readonly podLogs = new FakePodLogs();
  readonly #collections = new Map<string, Map<string, Stored>>();
  readonly #watchers = new Set<Watcher>();
  /** Changes of each collection, oldest first. */
  readonly #histories = new Map<string, Change[]>();
  readonly #responders = new Map<string, (body: Json) => unknown>([
    ['/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', () => ({ status: { resourceRules: [] } })],
  ]);
  #version = 1_000;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
  }

  client(): MemoryClient {
    return new MemoryClient(this);
  }

  /**
   * Sets the response to POST requests for this path. An exception of `bodyOf` is thrown to the sender of the request.
   */
  respond(path: string, bodyOf: (body: Json) => unknown): void {
    this.#responders.set(path, bodyOf);
  }

  get(collection: string, name: string): Stored | undefined {
    return copy(this.#collections.get(collection)?.get(name));
  }

  list(collection: string): Stored[] {
    return copy([...this.stored(collection)]);
  }

  /**
   * Returns the stored objects without copies. The cluster replaces objects and never modifies them. Callers must not
   * modify them.
   */
  stored(collection: string): readonly Stored[] {
    return [...(this.#collections.get(collection)?.values() ?? [])];
  }

  /** Creates or replaces an object as an administrator, at the given time. */
  put(collection: string, object: KubeObject & Json): void {
    const before = this.#collections.get(collection)?.get(object.metadata.name);
    this.#write(collection, copy(object), before, object.metadata.creationTimestamp);
  }

  delete(collection: string, name: string): void {
    const before = this.#collections.get(collection)?.get(name);
    if (before !== undefined) this.#remove(collection, before);
  }

  /** Handles a request. The response contains the stored objects, which the caller serializes. */
  handle({ method, path, query, body }: SeenRequest): ClusterResponse {
    const responder = this.#responders.get(path);
    if (method === 'POST' && responder !== undefined) return { status: 201, body: copy(responder(body as Json)) };
    const at = path.lastIndexOf('/');
    const last = path.slice(at + 1);
    if (method === 'POST') return this.#create(path, body as Stored);
    // A path whose last segment follows a version or a namespace names a collection. Any other path names an object.
    if (/\/(v\d\w*|namespaces\/[^/]+)\/[^/]+$/.test(path))
      return method === 'GET' ? this.#list(path, query) : failure(405, 'MethodNotAllowed', 'not on a collection');
    const collection = path.slice(0, at);
    const current = this.#collections.get(collection)?.get(last);
    if (current === undefined) return failure(404, 'NotFound', `${collection} "${last}" not found`);
    if (method === 'GET') return { status: 200, body: current };
    if (method === 'DELETE') {
      const wanted = (body as { preconditions?: { resourceVersion?: string } } | undefined)?.preconditions;
      if (wanted?.resourceVersion !== undefined && wanted.resourceVersion !== current.metadata.resourceVersion)
        return failure(409, 'Conflict', 'the precondition does not hold');
      this.#remove(collection, current);
      const details = { name: last, uid: current.metadata.uid };
      return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } };
    }
    if (Array.isArray(body)) {
      const patched = jsonPatch(current, body as Addition[]);
      return patched === undefined
        ? failure(422, 'Invalid', 'the patch does not fit')
        : { status: 200, body: this.#write(collection, patched, current) };
    }
    const next = method === 'PATCH' ? (mergePatch(current, body) as Stored) : (copy(body) as Stored);
    const base = (body as Partial<KubeObject>).metadata?.resourceVersion;
    if (base !== undefined && base !== current.metadata.resourceVersion)
      return failure(409, 'Conflict', 'the object has been modified');
    return { status: 200, body: this.#write(collection, next, current) };
  }

  /** Reports every change after the resourceVersion `since`. Returns a function that stops the watch. */
  watch(collection: string, fieldSelector: unknown, since: string, report: Watcher['report']): () => void {
    const watcher: Watcher = { collection, fieldSelector, report };
    const history = this.#histories.get(collection) ?? [];
    const after = history.findLastIndex(({ version }) => version <= Number(since));
    for (const change of history.slice(after + 1)) inform(watcher, change);
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Deletes the history, so that watches and lists cannot start at an earlier resourceVersion. */
  forgetHistory(): void {
    this.#histories.clear();
  }

  get version(): string {
    return String(this.#version);
  }

  #create(collection: string, body: Stored & { stringData?: Record<string, string>; data?: Json }): ClusterResponse {
    const { stringData, ...rest } = copy(body);
    const { generateName, ...metadata } = rest.metadata as KubeObject['metadata'] & { generateName?: string };
    const name = metadata.name ?? `${generateName ?? ''}${this.#version}`;
    if (this.#collections.get(collection)?.has(name) === true)
      return failure(409, 'AlreadyExists', `"${name}" already exists`);
    const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const object = {
      ...rest,
      metadata: { ...metadata, name },
      ...(stringData === undefined ? {} : { data: { ...rest.data, ...(Object.fromEntries(encoded) as Json) } }),
    } as Stored;
    return { status: 201, body: this.#write(collection, object, undefined) };
  }

  #list(path: string, query: SeenRequest['query']): ClusterResponse {
    const exact = query['resourceVersionMatch'] === 'Exact' ? Number(query['resourceVersion']) : undefined;
    const all = exact === undefined ? this.stored(path) : this.#listAt(path, exact);
    const items = all.filter((object) => matches(object, query['fieldSelector']));
    return {
      status: 200,
      body: { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: this.version }, items },
    };
  }

  /** Returns the collection as of the resourceVersion `until`. */
  #listAt(path: string, until: number): Stored[] {
    const objects = new Map<string, Stored>();
    for (const { version, type, object } of this.#histories.get(path) ?? []) {
      if (version > until) continue;
      if (type === 'DELETED') objects.delete(object.metadata.name);
      else objects.set(object.metadata.name, object);
    }
    return [...objects.values()];
  }

  #write(collection: string, object: Stored, before: Stored | undefined, created?: string): Stored {
    this.#version += 1;
    const namespace = /\/namespaces\/([^/]+)\/[^/]+$/.exec(collection)?.[1];
    const stored: Stored = {
      ...object,
      metadata: {
        ...object.metadata,
        ...(namespace === undefined ? {} : { namespace }),
        uid: before?.metadata.uid ?? `uid-${this.#version}`,
        creationTimestamp: created ?? before?.metadata.creationTimestamp ?? new Date(this.clock.now()).toISOString(),
        resourceVersion: this.version,
      },
    };
    const collected = this.#collections.get(collection) ?? new Map<string, Stored>();
    this.#collections.set(collection, collected.set(stored.metadata.name, stored));
    this.#report(collection, before === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  #remove(collection: string, object: Stored): void {
    this.#version += 1;
    this.#collections.get(collection)?.delete(object.metadata.name);
    this.#report(collection, 'DELETED', {
      ...object,
      metadata: { ...object.metadata, resourceVersion: this.version },
    });
  }

  #report(collection: string, type: ChangeType, object: Stored): void {
    const change = { version: this.#version, type, object };
    const history = this.#histories.get(collection) ?? [];
    history.push(change);
    this.#histories.set(collection, history);
    for (const watcher of this.#watchers) if (watcher.collection === collection) inform(watcher, change);
  }
}

function inform(watcher: Watcher, { type, object }: Change): void {
  if (matches(object, watcher.fieldSelector)) watcher.report(type, object);
}

/** Returns whether an object matches a field selector with one term, `path=value`. */
function matches(object: Stored, fieldSelector: unknown): boolean {
  if (typeof fieldSelector !== 'string') return true;
  const [field = '', value] = fieldSelector.split('=');
  return value === field.split('.').reduce(memberOf, object);
}

const memberOf = (inside: unknown, name: string): unknown => (inside as Json | undefined)?.[name];

/** One replica's client of the cluster, with the faults that a test sets. */
export class MemoryClient implements Cluster {
  /** All sent requests, including watches. */
  readonly requests: SeenRequest[] = [];
  /** Runs before the cluster processes a request. An exception is thrown to the sender of the request. */
  before: (request: SeenRequest) => void | Promise<void> = () => undefined;
  /** Runs after the cluster has processed a request and before the caller receives the response. */
  after: (request: SeenRequest) => void | Promise<void> = () => undefined;
  ownAudiences: readonly string[] = [];
  ownIssuer: string | undefined;
  ownIdentity: ServerIdentity = {
    username: 'system:serviceaccount:platform-system:platform-apiserver',
    uid: 'own-uid',
  };
  readonly #cluster: MemoryCluster;
  readonly #held: (() => void)[] = [];
  #holding = false;
  #upstream: Upstream | undefined;

  constructor(cluster: MemoryCluster) {
    this.#cluster = cluster;
  }

  /** The kube-apiserver that receives proxied requests. By default, nothing listens at its address. */
  get upstream(): Upstream {
    return (this.#upstream ??= upstreamAt('http://127.0.0.1:1'));
  }

  set upstream(upstream: Upstream) {
    this.#upstream = upstream;
  }

  /** Holds back the data of all watches, as on a hanging connection. New watches get no response. */
  holdWatches(): void {
    this.#holding = true;
  }

  /** Delivers the data that was held back, and ends the hold. */
  releaseWatches(): void {
    this.#holding = false;
    for (const send of this.#held.splice(0)) send();
  }

  /** Returns the sent requests with this method and this end of the path, such as `requestsTo('POST', '/sessions')`. */
  requestsTo(method: string, pathEnd: string): SeenRequest[] {
    return this.requests.filter(
      (one) => one.method === method && one.path.endsWith(pathEnd) && one.query['watch'] === undefined,
    );
  }

  async json<T>(path: string, options: KubeRequest = {}): Promise<T> {
    const { status, body } = await this.#exchange(path, options);
    const text = JSON.stringify(body);
    if (status < 200 || status > 299) throw KubeError.from(status, text);
    return JSON.parse(text) as T;
  }

  async stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    if (options.query?.['watch'] !== undefined) return await this.#watch(path, options);
    const log = /\/pods\/[^/]+\/log$/.test(path)
      ? this.#cluster.podLogs.respond(this.#seen(path, options), options.signal)
      : undefined;
    if (log !== undefined) return await log;
    const { status, body } = await this.#exchange(path, options);
    return { status, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(body))]) };
  }

  audiences = async (): Promise<readonly string[]> => this.ownAudiences;
  issuer = async (): Promise<string | undefined> => this.ownIssuer;
  identity = async (): Promise<ServerIdentity> => this.ownIdentity;

  close = async (): Promise<void> => this.#upstream?.close();

  #seen(path: string, { method = 'GET', query = {}, body, headers = {}, contentType }: KubeRequest): SeenRequest {
    const request = { method, path, query, body: body === undefined ? undefined : copy(body), headers, contentType };
    this.requests.push(request);
    return request;
  }

  async #exchange(path: string, options: KubeRequest): Promise<ClusterResponse> {
    const request = this.#seen(path, options);
    await this.before(request);
    if (options.signal?.aborted === true) throw unreachable(options.signal.reason);
    const response = this.#cluster.handle(request);
    await this.after(request);
    return response;
  }

  async #watch(path: string, options: KubeRequest): Promise<KubeResponse> {
    const request = this.#seen(path, options);
    await this.before(request);
    const { signal, query = {} } = options;
    if (this.#holding)
      await new Promise<void>((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(unreachable(signal.reason)));
        this.#held.push(resolve);
      });
    const body = new PassThrough();
    const send = (event: unknown): void => {
      const write = (): void => {
        if (!body.writableEnded && !body.destroyed) body.write(`${JSON.stringify(event)}\n`);
      };
      if (this.#holding) this.#held.push(write);
      else write();
    };
    const bookmark = (ends: boolean): void =>
      send({
        type: 'BOOKMARK',
        object: {
          metadata: {
            resourceVersion: this.#cluster.version,
            ...(ends ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
          },
        },
      });
    const report = (type: ChangeType, object: Stored): void => send({ type, object });
    const initial = query['sendInitialEvents'] === 'true';
    const since = initial ? this.#cluster.version : String(query['resourceVersion'] ?? this.#cluster.version);
    if (initial) {
      for (const object of this.#cluster.stored(path))
        if (matches(object, query['fieldSelector'])) report('ADDED', object);
      bookmark(true);
    }
    const stopWatch = this.#cluster.watch(path, query['fieldSelector'], since, report);
    const { clock } = this.#cluster;
    const duration = Number(query['timeoutSeconds'] ?? 300) * 1_000;
    const cancelBookmark = clock.after(Math.max(duration - lastBookmark, 0), () => {
      if (!this.#holding) bookmark(false);
    });
    const cancelEnd = clock.after(duration, () => {
      if (!this.#holding) end();
    });
    const end = (): void => {
      stopWatch();
      cancelBookmark();
      cancelEnd();
      signal?.removeEventListener('abort', abort);
      body.end();
    };
    const abort = (): void => {
      end();
      body.destroy(signal?.reason as Error);
    };
    body.on('error', () => undefined);
    signal?.addEventListener('abort', abort);
    return { status: 200, headers: {}, body };
  }
}
