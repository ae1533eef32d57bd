import { InProgress } from '../../runtime/bounded-cache.ts';
import { readBody, sharedRequest } from '../../runtime/promises.ts';
import type { KubeClient, KubeRequest } from '../client/client.ts';
import { KubeError } from '../client/kube-error.ts';
import { metadataAs } from '../client/kube-object.ts';
import type { ListMeta } from '../cache/kube-responses.ts';

interface ObjectRequest {
  readonly send: () => Promise<number>;
  callers: number;
}

/**
 * Requests the current resourceVersion of a collection or an object. Concurrent callers share a request. A call never
 * joins a request that was sent before the call. All methods throw KubeError.
 */
export class VersionRequests {
  readonly #client: Pick<KubeClient, 'stream'>;
  readonly #ofObjects = new InProgress<ObjectRequest>('version_requests');
  readonly ofCollection: () => Promise<number>;

  constructor(client: Pick<KubeClient, 'stream'>, collection: string) {
    this.#client = client;
    this.ofCollection = sharedRequest(() => this.#send(collection, 'PartialObjectMetadataList', { limit: 1 }));
  }

  async ofObject(path: string): Promise<number> {
    let request = this.#ofObjects.get(path);
    if (request === undefined) {
      request = { send: sharedRequest(() => this.#send(path, 'PartialObjectMetadata')), callers: 0 };
      this.#ofObjects.set(path, request);
    }
    request.callers += 1;
    try {
      return await request.send();
    } finally {
      request.callers -= 1;
      if (request.callers === 0) this.#ofObjects.delete(path);
    }
  }

  async #send(path: string, kind: string, query: KubeRequest['query'] = {}): Promise<number> {
    const { status, body } = await this.#client.stream(path, { query, headers: { accept: metadataAs(kind) } });
    const text = (await readBody(body)).toString('utf8');
    if (status !== 200) throw KubeError.from(status, text);
    return Number((JSON.parse(text) as { metadata: ListMeta }).metadata.resourceVersion);
  }
}
