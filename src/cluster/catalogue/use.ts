import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeObject } from '../client/kube-object.ts';
import type { Store } from '../cache/store.ts';
import type { StoredObject } from '../cache/stored-object.ts';
import type { Catalogue, CatalogueEntry, Use } from './catalogue.ts';
import { synced } from './waiting.ts';

/** The copy of a resource, once it is complete; it has to be released. Throws 503 where there is none. */
export async function useCopy(
  catalogue: Pick<Catalogue, 'use'>,
  entry: CatalogueEntry,
  context: { readonly signal: AbortSignal },
): Promise<Use> {
  const { resource } = entry.definition.underlying;
  const use = await catalogue.use(entry);
  if (use === undefined) throw serviceUnavailable(`this server may not list and watch ${resource}`, 5);
  try {
    await synced(use.resource, context, () => serviceUnavailable(`the copy of ${resource} is not complete yet`, 1));
    return use;
  } catch (error) {
    use.release();
    throw error;
  }
}

/** Reads from the copy of a resource. Throws 503 as `useCopy` does. */
export async function fromCopy<T>(
  catalogue: Pick<Catalogue, 'use'>,
  entry: CatalogueEntry,
  context: { readonly signal: AbortSignal },
  read: (store: Store<unknown>) => T | Promise<T>,
): Promise<T> {
  const use = await useCopy(catalogue, entry, context);
  try {
    return await read(use.resource.store);
  } finally {
    use.release();
  }
}

/** What it says beside what is kept ready. Its last byte is where a list writes a comma. */
export const decoded = ({ bytes }: StoredObject<unknown>): KubeObject =>
  JSON.parse(bytes.toString('utf8', 0, bytes.length - 1)) as KubeObject;
