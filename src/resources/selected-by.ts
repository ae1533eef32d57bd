/** Filters for objects that another object selects, such as the pods of a Service. */
import { copied } from '../runtime/bounded-cache.ts';
import type { RequestContext } from '../http/route.ts';
import { labelOf, type StoredObject } from '../cluster/cache/stored-object.ts';
import { decodeObject, readFromCache, acquireCache } from '../cluster/catalogue/read-cache.ts';
import { inIndex, sharedFilter, type ObjectFilter } from '../apimachinery/list/filters.ts';
import type { ResourceDefinition, SelectedBy } from '../cluster/catalogue/resource.ts';
import { visibleNamespaces, type ReadAccess } from '../apimachinery/visible-namespaces.ts';

type Labels = readonly (readonly [string, string])[];

type Selected = Pick<ResourceDefinition<unknown>, 'selectedBy'>;

/** Returns the selecting objects that the query names. */
export const selectingObjects = (
  { selectedBy: all = {} }: Selected,
  { query }: Pick<RequestContext, 'query'>,
): readonly { readonly by: SelectedBy; readonly name: string }[] =>
  Object.entries(all).flatMap(([parameter, by]) => {
    const name = query.get(parameter);
    return name === null ? [] : [{ by, name }];
  });

/**
 * Returns filters for the selecting objects that the query names. Selecting objects are looked up in the namespaces in
 * which the caller is allowed to list them. Throws 403 if there are no such namespaces. An object that does not exist
 * selects nothing.
 */
export async function selectedBy(
  access: ReadAccess,
  definition: Selected,
  context: RequestContext,
): Promise<readonly ObjectFilter<unknown>[]> {
  const filters: ObjectFilter<unknown>[] = [];
  // The name is copied, because the filter may be cached and a substring would keep the whole URL in memory.
  for (const { by, name } of selectingObjects(definition, context))
    filters.push(await filterBy(access, by, copied(name), context));
  return filters;
}

async function filterBy(
  access: ReadAccess,
  { resource, labels }: SelectedBy,
  name: string,
  context: RequestContext,
): Promise<ObjectFilter<unknown>> {
  const { catalogue } = access;
  const { user, info, query, signal } = context;
  const entry = await catalogue.find(resource, signal);
  const listing = { ...info, verb: 'list', name };
  const visible = await visibleNamespaces(access, { user, info: listing, query }, entry.definition);
  const named = sharedFilter(`names=${name}`, (object) => object.name === name, inIndex('name', [name]));
  const within: ObjectFilter<unknown> = ({ namespace }) =>
    info.namespace === '' ? visible?.has(namespace) !== false : namespace === info.namespace;
  const selectors = await readFromCache(catalogue, entry, context, (store) =>
    store.select([named], 'name', context, (objects) =>
      objects
        .filter(within)
        .map((object) => [object.namespace, Object.entries(labels(decodeObject(object)))] as const)
        .filter(([, selector]) => selector.length > 0),
    ),
  );
  return selecting(new Map(selectors));
}

/** Returns a filter for objects with all labels of the selectors of their namespace. */
function selecting(selectors: ReadonlyMap<string, Labels>): ObjectFilter<unknown> {
  const [only, ...more] = selectors;
  const [first] = only?.[1] ?? [];
  return sharedFilter(
    `selected ${JSON.stringify([...selectors])}`,
    (object) => selectors.get(object.namespace)?.every(([label, value]) => labelOf(object, label) === value) === true,
    first === undefined || more.length > 0
      ? inIndex('namespace', [...selectors.keys()])
      : inIndex(`label ${first[0]}`, [first[1]]),
  );
}

/**
 * Follows the selecting objects that the query names, in all namespaces. Calls `changed` when one of them changes its
 * selector, and `lost` when they can no longer be followed. The returned function stops following them.
 */
export async function followSelecting(
  { catalogue }: ReadAccess,
  definition: Selected,
  context: RequestContext,
  { changed, lost }: { readonly changed: () => void; readonly lost: () => void },
): Promise<() => void> {
  const { info, signal } = context;
  const stops: (() => void)[] = [];
  const stop = (): void => stops.forEach((one) => one());
  try {
    for (const { by, name } of selectingObjects(definition, context)) {
      const { resource, labels } = by;
      const handle = await acquireCache(catalogue, await catalogue.find(resource, signal), { signal });
      stops.push(() => handle.release());
      const selected = (object: StoredObject<unknown> | undefined): string =>
        JSON.stringify(object === undefined ? {} : labels(decodeObject(object)));
      const { store, ended } = handle.resource;
      stops.push(
        store.subscribe({
          change: ({ type, object, previous }) => {
            if (object.name !== name || (info.namespace !== '' && object.namespace !== info.namespace)) return;
            if (selected(previous) !== selected(type === 'DELETED' ? undefined : object)) changed();
          },
          reset: changed,
        }),
      );
      ended?.addEventListener('abort', lost);
      stops.push(() => ended?.removeEventListener('abort', lost));
    }
    return stop;
  } catch (error) {
    stop();
    throw error;
  }
}

/** Returns whether both filters select the same objects. */
export const sameSelection = (
  some: readonly ObjectFilter<unknown>[],
  others: readonly ObjectFilter<unknown>[],
): boolean => JSON.stringify(some.map(({ key }) => key)) === JSON.stringify(others.map(({ key }) => key));
