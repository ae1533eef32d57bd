import type { KubeClient } from './client/client.ts';
import type { KubeObject } from './cache/informer.ts';
import { isKubeError } from './client/kube-error.ts';

/**
 * Reads an object, or creates it with what `make` gives when there is none. When another replica was faster (409) its object is
 * read: all replicas go on with the same one. `collection` is the path of the list, such as /api/v1/namespaces/x/secrets.
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
