/** Resource that is not cached: each request reads it from kube-apiserver as the caller. */
import { badGateway, forbidden } from '../runtime/errors.ts';
import { mapConcurrent, readBody } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import type { KubeClient, KubeRequest, KubeResponse } from '../cluster/client/client.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { MalformedResponseError, membersOf } from '../cluster/cache/json-scan.ts';
import { ManagedFields } from '../cluster/cache/managed-fields.ts';
import { splitList } from '../cluster/cache/kube-responses.ts';
import { storeObject, type StoredObject } from '../cluster/cache/stored-object.ts';
import type { MemoryShare } from '../cluster/catalogue/memory-limit.ts';
import { collectionPath, type ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { asCaller } from '../apimachinery/reading.ts';
import type { Visible } from '../apimachinery/visible-namespaces.ts';

const pageSize = 500;
/** Maximum concurrent lists of single namespaces. */
const maxConcurrent = 8;
/**
 * Maximum bytes of an object. Objects in etcd have at most 1.5 MiB; only objects that another server generates are
 * larger.
 */
const maxObjectBytes = 16 * 1024 * 1024;

export interface Listed {
  readonly objects: StoredObject<unknown>[];
  readonly resourceVersion: number;
}

interface Page {
  readonly objects: readonly StoredObject<unknown>[];
  readonly metadata: ReturnType<typeof splitList>['metadata'];
}

interface ListRequest extends Pick<RequestContext, 'user' | 'signal'> {
  readonly namespace: string;
  readonly fieldSelector: string | undefined;
}

/** Adds to the bytes that a list holds in memory. A negative number subtracts. */
type Count = (bytes: number) => void;

/** Adds a resourceVersion to objects without one, such as metrics, which Kubernetes does not store. */
function versioned(object: KubeObject, bytes: Buffer): [KubeObject, Buffer] {
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') return [object, bytes];
  const at = membersOf(bytes, bytes.indexOf('{')).find(({ key }) => key === 'metadata');
  if (at === undefined) throw new MalformedResponseError('an object has no metadata');
  const { resourceVersion: _, ...rest } = metadata;
  const known = { ...rest, resourceVersion: '0' };
  return [
    { ...object, metadata: known },
    Buffer.concat([bytes.subarray(0, at.value), Buffer.from(JSON.stringify(known)), bytes.subarray(at.end)]),
  ];
}

const bounded = (body: AsyncIterable<unknown>): Promise<Buffer> =>
  readBody(body, maxObjectBytes, () => badGateway(`the response exceeds ${maxObjectBytes} bytes`));

export class UncachedResource {
  readonly definition: ResourceDefinition<unknown>;
  readonly #client: Pick<KubeClient, 'stream'>;
  readonly #managedFields = new ManagedFields();

  constructor(definition: ResourceDefinition<unknown>, client: Pick<KubeClient, 'stream'>) {
    this.definition = definition;
    this.#client = client;
  }

  /** Throws 502 if the object is malformed. */
  stored(object: KubeObject, bytes: Buffer): StoredObject<unknown> {
    const { underlying } = this.definition;
    try {
      return storeObject(...versioned(object, bytes), {
        selfLink: ({ metadata: { namespace, name } }) => `${collectionPath(underlying, namespace)}/${name}`,
        fields: (decoded) => this.definition.fields(decoded),
        managedFields: this.#managedFields,
      });
    } catch (cause) {
      throw badGateway(`the server of ${underlying.resource} returned a malformed object`, { cause });
    }
  }

  async get({ user, info, signal }: RequestContext): Promise<StoredObject<unknown>> {
    const { body } = await this.#request(user, this.#namespaceOf(info), `/${encodeURIComponent(info.name)}`, {
      signal,
    });
    const bytes = await bounded(body);
    return this.stored(JSON.parse(bytes.toString('utf8')) as KubeObject, bytes);
  }

  /** Opens a watch at kube-apiserver. `signal` ends the watch. */
  async watch(
    { user, info }: RequestContext,
    query: NonNullable<KubeRequest['query']>,
    signal: AbortSignal,
  ): Promise<KubeResponse> {
    return await this.#request(user, this.#namespaceOf(info), '', { query, signal });
  }

  async list({ user, info, signal }: RequestContext, visible: Visible, share: MemoryShare): Promise<Listed> {
    const { underlying, namespaced } = this.definition;
    if (visible !== undefined && !namespaced)
      throw forbidden(
        underlying,
        '',
        `${underlying.resource} are not cached, and you are not allowed to list all of them: request a single object by name`,
      );
    let bytes = 0;
    const count: Count = (more) => {
      bytes += more;
      share.hold(bytes);
    };
    const namespaces = visible === undefined ? [this.#namespaceOf(info)] : [...visible].toSorted();
    // The caller may have the right to list only this name.
    const fieldSelector = info.name === '' ? undefined : `metadata.name=${info.name}`;
    const lists = await mapConcurrent(namespaces, maxConcurrent, (namespace) =>
      this.#listAll({ user, namespace, fieldSelector, signal }, count),
    );
    return {
      objects: lists.flatMap(({ objects }) => objects),
      // A watch from the oldest of these versions misses no events.
      resourceVersion: Math.min(...lists.map(({ resourceVersion }) => resourceVersion)),
    };
  }

  #namespaceOf({ namespace }: RequestContext['info']): string {
    return this.definition.namespaced ? namespace : '';
  }

  async #listAll({ user, namespace, fieldSelector, signal }: ListRequest, count: Count): Promise<Listed> {
    const pages: (readonly StoredObject<unknown>[])[] = [];
    let next: string | undefined;
    let resourceVersion = 0;
    do {
      const query = { limit: pageSize, continue: next, fieldSelector };
      const { body } = await this.#request(user, namespace, '', { query, signal });
      const page = await this.#readPage(body, count);
      pages.push(page.objects);
      next = page.metadata.continue === '' ? undefined : page.metadata.continue;
      resourceVersion = Number(page.metadata.resourceVersion ?? 0) || 0;
    } while (next !== undefined);
    return { objects: pages.flat(), resourceVersion };
  }

  async #readPage(body: AsyncIterable<unknown>, count: Count): Promise<Page> {
    const chunks: Buffer[] = [];
    let raw = 0;
    for await (const chunk of body) {
      raw += (chunk as Buffer).length;
      count((chunk as Buffer).length);
      chunks.push(chunk as Buffer);
    }
    const { items, metadata, ...type } = splitList(Buffer.concat(chunks));
    const objects = items.map(({ bytes }) => {
      const stored = this.stored({ ...type, ...(JSON.parse(bytes.toString('utf8')) as KubeObject) }, bytes);
      count(stored.length + stored.managedFieldsSize);
      return stored;
    });
    // The text of the page is no longer needed.
    count(-raw);
    return { objects, metadata };
  }

  /** Returns a response with status 200. Throws StatusError for any other response. */
  async #request(
    user: RequestContext['user'],
    namespace: string,
    subpath: string,
    options: KubeRequest,
  ): Promise<KubeResponse> {
    try {
      const path = `${collectionPath(this.definition.underlying, namespace)}${subpath}`;
      const response = await asCaller(this.#client, user).stream(path, options);
      if (response.status === 200) return response;
      throw KubeError.from(response.status, (await bounded(response.body)).toString('utf8'));
    } catch (error) {
      options.signal?.throwIfAborted();
      throw error instanceof KubeError ? error.toStatusError() : error;
    }
  }
}
