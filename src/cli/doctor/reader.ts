/** Reads objects as the caller of the doctor. Each object is read once, and remembered for the support bundle. */
import type { Cluster, KubeRequest, KubeResponse } from '../../cluster/client/client.ts';
import { isKubeError } from '../../cluster/client/kube-error.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { readBody } from '../../runtime/promises.ts';
import { notChecked, Stop } from './check.ts';

/** A resource of the API. */
export interface Resource {
  /** Path of the API version, such as /apis/apps/v1. */
  readonly path: string;
  readonly name: string;
}

const core = '/api/v1';
export const resources = {
  apiServices: { path: '/apis/apiregistration.k8s.io/v1', name: 'apiservices' },
  configMaps: { path: core, name: 'configmaps' },
  deployments: { path: '/apis/apps/v1', name: 'deployments' },
  endpointSlices: { path: '/apis/discovery.k8s.io/v1', name: 'endpointslices' },
  events: { path: core, name: 'events' },
  networkPolicies: { path: '/apis/networking.k8s.io/v1', name: 'networkpolicies' },
  pods: { path: core, name: 'pods' },
  secrets: { path: core, name: 'secrets' },
  services: { path: core, name: 'services' },
  subjectAccessReviews: { path: '/apis/authorization.k8s.io/v1', name: 'subjectaccessreviews' },
} as const satisfies Record<string, Resource>;

/** Returns the name of a resource with its group, such as `deployments.apps`. */
function fullName({ path, name }: Resource): string {
  const group = path.split('/')[3] === undefined ? '' : path.split('/')[2];
  return group === '' ? name : `${name}.${group}`;
}

export type TextResponse = Pick<KubeResponse, 'status' | 'headers'> & { readonly text: string };

const readWhole = (body: AsyncIterable<unknown>): Promise<Buffer> => readBody(body);

/** Error for a request that kube-apiserver accepted, but did not respond to in time. */
export class NoResponse extends Error {}

export class Reader {
  readonly #client: Pick<Cluster, 'json' | 'stream'>;
  readonly #responses = new Map<string, Promise<unknown>>();
  /** Objects and lists by path. */
  readonly objects = new Map<string, unknown>();

  constructor(client: Pick<Cluster, 'json' | 'stream'>) {
    this.#client = client;
  }

  /** Returns the object; undefined if it does not exist. Throws Stop if the caller is not allowed to get the object. */
  async get<T extends KubeObject>(resource: Resource, name: string, namespace?: string): Promise<T | undefined> {
    try {
      return await this.#read<T>('get', resource, namespace, `/${name}`);
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  /** Returns at most 500 objects. Throws Stop if the caller is not allowed to list the objects. */
  async list<T extends KubeObject>(
    resource: Resource,
    namespace: string,
    selectors: { readonly labelSelector?: string; readonly fieldSelector?: string } = {},
  ): Promise<readonly T[]> {
    const query = new URLSearchParams({ limit: '500', ...selectors }).toString();
    const { items } = await this.#read<{ items: readonly T[] }>('list', resource, namespace, `?${query}`);
    return items;
  }

  /**
   * Creates a review, which kube-apiserver does not store. Throws Stop if the caller is not allowed to create the
   * review.
   */
  async review<T>(resource: Resource, body: object): Promise<T> {
    const options = { method: 'POST', body } as const;
    return await this.#request<T>('create', resource, undefined, `${resource.path}/${resource.name}`, options);
  }

  /**
   * Returns a response of any status. `timeout`: maximum milliseconds until the response ends. Throws NoResponse after
   * the timeout, and KubeError if kube-apiserver cannot be reached.
   */
  async response(path: string, timeout = 10_000, read: typeof readWhole = readWhole): Promise<TextResponse> {
    const signal = AbortSignal.timeout(timeout);
    try {
      // The signal also limits the body, which the timeout of the client does not.
      const { status, headers, body } = await this.#client.stream(path, { timeout: 0, signal });
      return { status, headers, text: (await read(body)).toString('utf8') };
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new NoResponse(`kube-apiserver did not respond within ${timeout / 1_000} s`, { cause: error });
    }
  }

  async #read<T>(verb: string, resource: Resource, namespace: string | undefined, rest: string): Promise<T> {
    const folder = namespace === undefined ? '' : `/namespaces/${namespace}`;
    const path = `${resource.path}${folder}/${resource.name}${rest}`;
    const response = (this.#responses.get(path) ?? this.#request(verb, resource, namespace, path)) as Promise<T>;
    this.#responses.set(path, response);
    const object = await response;
    this.objects.set(path, object);
    return object;
  }

  async #request<T>(
    verb: string,
    resource: Resource,
    namespace: string | undefined,
    path: string,
    options: KubeRequest = {},
  ): Promise<T> {
    try {
      return await this.#client.json<T>(path, options);
    } catch (error) {
      if (!isKubeError(error, 403)) throw error;
      const where = namespace === undefined ? '' : ` in ${namespace}`;
      throw new Stop(notChecked(`needs the right to ${verb} ${fullName(resource)}${where}`));
    }
  }
}
