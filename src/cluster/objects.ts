/** Reads and writes the objects of one collection. */
import type { KubeClient, KubeRequest } from './client/client.ts';
import { isKubeError } from './client/kube-error.ts';
import { metadataHeaders, type KubeObject, type ObjectMeta } from './client/kube-object.ts';

/**
 * Timeout of one request in milliseconds. The timeout is short, so that a hanging write does not delay the next writes
 * for long.
 */
const timeout = 3_000;

const mergePatch = 'application/merge-patch+json';

export class Objects<T extends KubeObject> {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #path: string;

  /** `path`: the path of the collection, such as /api/v1/namespaces/x/secrets. */
  constructor(client: Pick<KubeClient, 'json'>, path: string) {
    this.#client = client;
    this.#path = path;
  }

  async get(name: string): Promise<T | undefined> {
    try {
      return await this.request<T>(`/${name}`);
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  /** Creates an object. Returns false if an object with this name exists. */
  create(object: T): Promise<boolean> {
    return this.#write('', { method: 'POST', body: object });
  }

  /** Replaces an object. Returns false if the object was changed or deleted since it was read. */
  replace(object: T): Promise<boolean> {
    return this.#write(`/${object.metadata.name}`, { method: 'PUT', body: object });
  }

  /**
   * Sends a JSON merge patch (RFC 7396). `path`: the name, optionally with a subresource. Returns false if the object
   * was deleted, or if its uid or resourceVersion differs from that of the patch.
   */
  patch(path: string, patch: object): Promise<boolean> {
    return this.#write(`/${path}`, { method: 'PATCH', contentType: mergePatch, body: patch });
  }

  /** Deletes an object. Returns false if the object was changed or deleted since it was read. */
  delete({ name, resourceVersion }: ObjectMeta): Promise<boolean> {
    const body = { preconditions: { resourceVersion } };
    return this.#write(`/${name}`, { method: 'DELETE', headers: {}, body });
  }

  /** Sends a request. `path` is relative to the collection. */
  request<R>(path: string, options: Omit<KubeRequest, 'signal'> = {}): Promise<R> {
    return this.#client.json<R>(`${this.#path}${path}`, { ...options, signal: AbortSignal.timeout(timeout) });
  }

  /** Writes an object. Requests a response with only the metadata, because the rest of the object is known. */
  async #write(path: string, options: Omit<KubeRequest, 'signal'>): Promise<boolean> {
    try {
      await this.request(path, { headers: metadataHeaders, ...options });
      return true;
    } catch (error) {
      if (isKubeError(error, 409) || (isKubeError(error, 404) && path !== '')) return false;
      throw error;
    }
  }
}

/**
 * Reads an object, or creates it from `make` if it does not exist. If another replica was faster (409), its object is
 * read, so that all replicas use the same object.
 */
export async function ensure<T extends KubeObject>(
  client: KubeClient,
  collection: string,
  name: string,
  make: () => Promise<T> | T,
): Promise<T> {
  try {
    return await client.json<T>(`${collection}/${name}`);
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
  }
  try {
    return await client.json<T>(collection, { method: 'POST', body: await make() });
  } catch (error) {
    if (!isKubeError(error, 409)) throw error;
    return await client.json<T>(`${collection}/${name}`);
  }
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

interface ConfigMapContent {
  readonly data: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Creates a ConfigMap, or sets the data and annotations that are missing or different. */
export async function ensureConfigMap(
  client: KubeClient,
  namespace: string,
  name: string,
  { data, annotations = {} }: ConfigMapContent,
): Promise<void> {
  const collection = `/api/v1/namespaces/${namespace}/configmaps`;
  const body = { metadata: { annotations }, data };
  const { metadata, data: found = {} } = await ensure<ConfigMap>(client, collection, name, () => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, annotations },
    data,
  }));
  const differs = (wanted: ConfigMapContent['data'], present: ConfigMapContent['data'] = {}): boolean =>
    Object.entries(wanted).some(([key, value]) => present[key] !== value);
  if (differs(data, found) || differs(annotations, metadata.annotations))
    await client.json(`${collection}/${name}`, { method: 'PATCH', contentType: mergePatch, body });
}
