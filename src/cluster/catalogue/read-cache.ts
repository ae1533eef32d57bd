import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeObject } from '../client/kube-object.ts';
import type { Store } from '../cache/store.ts';
import type { StoredObject } from '../cache/stored-object.ts';
import type { CacheHandle, Catalogue, CatalogueEntry } from './catalogue.ts';
import { waitForSync } from './waiting.ts';

/**
 * Returns the cache of a resource once it is complete. The caller must release the cache. Throws 503 if the resource
 * cannot be cached.
 */
export async function acquireCache(
  catalogue: Pick<Catalogue, 'acquire'>,
  entry: CatalogueEntry,
  context: { readonly signal: AbortSignal },
): Promise<CacheHandle> {
  const { resource } = entry.definition.underlying;
  const handle = await catalogue.acquire(entry);
  if (handle === undefined) throw serviceUnavailable(`this server is not allowed to list and watch ${resource}`, 5);
  try {
    await waitForSync(handle.resource, context, () =>
      serviceUnavailable(`the cache of ${resource} is not ready yet`, 1),
    );
    return handle;
  } catch (error) {
    handle.release();
    throw error;
  }
}

/** Reads from the cache of a resource. Throws 503 as `acquireCache` does. */
export async function readFromCache<T>(
  catalogue: Pick<Catalogue, 'acquire'>,
  entry: CatalogueEntry,
  context: { readonly signal: AbortSignal },
  read: (store: Store<unknown>) => T | Promise<T>,
): Promise<T> {
  const handle = await acquireCache(catalogue, entry, context);
  try {
    return await read(handle.resource.store);
  } finally {
    handle.release();
  }
}

/** Decodes an object. The last byte is the comma that follows the object in a list. */
export const decodeObject = ({ bytes }: StoredObject<unknown>): KubeObject =>
  JSON.parse(bytes.toString('utf8', 0, bytes.length - 1)) as KubeObject;
