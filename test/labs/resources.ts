/** Runs the resource routes with fifty nodes, without sockets. */
import type { Request, Response } from 'express';
import { Writable } from 'node:stream';
import type { Attributes, Authorizer } from '../../src/auth/authorizers/authorizer.ts';
import { NamespaceAccessCache } from '../../src/apimachinery/namespace-access-cache.ts';
import { pathNotFound, StatusError } from '../../src/runtime/errors.ts';
import { requestInfo } from '../../src/http/filters/request-info.ts';
import type { Handler, RequestContext, Route } from '../../src/http/route.ts';
import type { KubeObject } from '../../src/cluster/client/kube-object.ts';
import { ManagedFields } from '../../src/cluster/cache/managed-fields.ts';
import { Store } from '../../src/cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../../src/cluster/cache/stored-object.ts';
import { ListMemory } from '../../src/cluster/catalogue/list-memory.ts';
import type { Resource } from '../../src/cluster/catalogue/resource.ts';
import { FieldSchemas } from '../../src/cluster/field-schemas.ts';
import { nodes, type NodeFields } from '../../src/resources/kinds/nodes.ts';
import type { KapisDeps } from '../../src/resources/routes.ts';
import { createLogger } from '../../src/runtime/logger.ts';
import { systemClock, type Clock } from '../../src/runtime/time.ts';

export interface NodeOptions {
  readonly resourceVersion?: number;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  /** Creation time in seconds after the first node. */
  readonly second?: number;
  readonly unschedulable?: boolean;
  readonly status?: object;
  readonly owner?: { kind: string; uid: string };
}

const managedFields = new ManagedFields();

export function nodeObject(name: string, options: NodeOptions = {}): KubeObject {
  const { resourceVersion = 1, labels, annotations, second = 0, unschedulable, status, owner } = options;
  const metadata = {
    name,
    uid: `uid-${name}`,
    resourceVersion: String(resourceVersion),
    creationTimestamp: new Date(1_700_000_000_000 + second * 1000).toISOString().replace('.000', ''),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(owner === undefined ? {} : { ownerReferences: [{ apiVersion: 'v1', name: 'owner', ...owner }] }),
    managedFields: [{ manager: 'test', operation: 'Update' }],
  };
  return {
    kind: 'Node',
    apiVersion: 'v1',
    metadata,
    spec: unschedulable === undefined ? {} : { unschedulable },
    status: status ?? {},
  } as KubeObject;
}

export function node(name: string, options: NodeOptions = {}): StoredObject<NodeFields> {
  const object = nodeObject(name, options);
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: ({ metadata }) => `/api/v1/nodes/${metadata.name}`,
    fields: (decoded) => nodes.fields(decoded),
    managedFields,
  });
}

export class FakeResponse extends Writable {
  readonly req = { httpVersion: '1.1' };
  statusCode = 200;
  headersSent = false;
  readonly headers: Record<string, string> = {};
  readonly chunks: Buffer[] = [];
  /** While true, the client does not read the response. */
  stalled = false;
  #waiting: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: 1024 });
  }

  setHeader(name: string, value: string | number): void {
    this.headers[name.toLowerCase()] = String(value);
  }

  appendHeader(name: string, value: string): void {
    this.setHeader(name, value);
  }

  writeHead(status: number, headers: Record<string, string>): this {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.flushHeaders();
    return this;
  }

  flushHeaders(): void {
    this.headersSent = true;
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.headersSent = true;
    // The bytes are copied, because the server can reuse their memory once the write callback is called.
    this.chunks.push(Buffer.from(chunk));
    if (this.stalled) this.#waiting = done;
    else done();
  }

  read(): void {
    this.stalled = false;
    const done = this.#waiting;
    this.#waiting = undefined;
    done?.();
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  get body(): Record<string, unknown> & { metadata: Record<string, string>; items: KubeObject[] } {
    return JSON.parse(this.text) as ReturnType<() => this['body']>;
  }

  /** Parsed events of a watch. */
  get events(): { type: string; object: KubeObject & Record<string, unknown> }[] {
    return this.text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { type: string; object: KubeObject & Record<string, unknown> });
  }
}

export interface FakeResource extends Resource<NodeFields> {
  synced: boolean;
  /** Requests to the cluster for the current revision. */
  confirmations: string[];
  /** Called instead of the request for the current revision. */
  onConfirm: () => void;
  /** Called instead of the request for older history. */
  onRecall: (resourceVersion: number, signal: AbortSignal) => Promise<void>;
}

export function fakeResource(store: Store<NodeFields> = new Store()): FakeResource {
  const resource: FakeResource = {
    definition: nodes,
    store,
    synced: true,
    confirmations: [],
    onConfirm: () => undefined,
    onRecall: async () => undefined,
    hasSynced: () => resource.synced,
    waitForSync: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
    reach: (resourceVersion, signal) => store.waitFor(resourceVersion, signal),
    recall: (resourceVersion, signal) => resource.onRecall(resourceVersion, signal),
    async confirm() {
      resource.confirmations.push('list');
      resource.onConfirm();
    },
    async confirmObject(_, name) {
      resource.confirmations.push(name);
      resource.onConfirm();
    },
  };
  return resource;
}

const noCluster = {
  stream: async (): Promise<never> => {
    throw new Error('there is no cluster');
  },
};

/** Reviews namespaces with the decisions of the authorizer. */
export const namespaceAccessOf = (authorizer: Authorizer, clock: Clock = systemClock): NamespaceAccessCache =>
  new NamespaceAccessCache(
    {
      authorize: (...request) => authorizer.authorize(...request),
      review: async (...request) => {
        const at = clock.monotonic();
        return { decision: await authorizer.authorize(...request), at };
      },
    },
    clock,
  );

/** Dependencies of `kapisRoutes` for a cluster without resources. */
export const emptyCluster = {
  catalogue: {
    find: async (): Promise<never> => {
      throw pathNotFound();
    },
    acquire: async () => undefined,
    apiResources: [],
    listMemory: new ListMemory(() => 1024 * 1024),
  },
  granted: { of: () => new Map(), hasSynced: () => true },
  namespaceAccess: namespaceAccessOf({ authorize: async () => ({ allowed: false, reason: '' }) }),
  client: noCluster,
  fieldSchemas: new FieldSchemas(noCluster),
  kinds: [],
  namespace: 'release',
} satisfies Omit<KapisDeps, 'authorizer' | 'resources'>;

export class FakeAuthorizer implements Authorizer {
  readonly reviews: Attributes[] = [];
  allowed = true;

  async authorize(_: unknown, attributes: Attributes): Promise<{ allowed: boolean; reason: string }> {
    this.reviews.push(attributes);
    return { allowed: this.allowed, reason: '' };
  }
}

export interface Call {
  readonly response: FakeResponse;
  readonly abort: () => void;
  /** Changes the groups of the caller. A watch then checks the rights of the caller again. */
  readonly changeUser: () => void;
  /** Makes a watch check the rights of the caller, as it does every few seconds. */
  readonly recheck: () => Promise<void>;
  /** Resolves with the error that the handler threw; undefined if there was none. */
  readonly done: Promise<StatusError | undefined>;
}

interface CallOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly username?: string;
}

export function call(
  routes: readonly Route[],
  url: string,
  { method = 'GET', headers = {}, username = 'alice' }: CallOptions = {},
): Call {
  const [path = '', search = ''] = url.split('?');
  const query = new URLSearchParams(search);
  const info = requestInfo(method, path, query);
  const route = routes.find((candidate) => new RegExp(`^${candidate.path.replace(/:\w+/g, '[^/]+')}$`).test(path));
  if (route === undefined) throw new Error(`no route for ${path}`);
  const controller = new AbortController();
  const listeners: (() => void)[] = [];
  const guards: (() => Promise<void>)[] = [];
  const recheck = async (): Promise<void> => void (await Promise.all(guards.map((guard) => guard())));
  const context: RequestContext = {
    info,
    query,
    auditID: 'audit',
    sourceIP: '127.0.0.1',
    userAgent: '',
    log: createLogger({ silent: true }),
    signal: controller.signal,
    user: { username, groups: [], via: username.startsWith('system:') ? 'token-review' : 'token' },
    impersonated: undefined,
    arrival: undefined,
    freeSlots: () => undefined,
    onEnd: () => undefined,
    audit: undefined,
    annotate: () => undefined,
    onUserChange: (listener) => void listeners.push(listener),
    onRecheck: (check, refuse) =>
      void guards.push(async () => {
        const error = await check().catch((problem: unknown) => problem);
        if (error instanceof StatusError && error.code < 500) refuse(error);
      }),
  };
  const response = new FakeResponse();
  const params = Object.fromEntries(
    route.path.split('/').flatMap((part, at) => (part.startsWith(':') ? [[part.slice(1), path.split('/')[at]]] : [])),
  ) as Record<string, string>;
  const req = { method, headers, path, url, params } as unknown as Request;
  return {
    response,
    abort: () => controller.abort(),
    changeUser: () => {
      for (const listener of listeners) listener();
      void recheck();
    },
    recheck,
    done: outcome(route.handler, req, response, context),
  };
}

async function outcome(
  handler: Handler,
  req: Request,
  response: FakeResponse,
  context: RequestContext,
): Promise<StatusError | undefined> {
  try {
    await handler(req, response as unknown as Response, context);
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}

/** Sends a request and returns the response. Throws unless the request succeeds. */
export async function get(routes: readonly Route[], url: string, options: CallOptions = {}): Promise<FakeResponse> {
  const { response, done } = call(routes, url, options);
  const error = await done;
  if (error !== undefined) throw error;
  return response;
}

/** Sends a request and returns the Status. Throws unless the request is rejected. */
export async function refused(routes: readonly Route[], url: string, options: CallOptions = {}): Promise<StatusError> {
  const error = await call(routes, url, options).done;
  if (error === undefined) throw new Error(`${url} succeeded`);
  return error;
}
