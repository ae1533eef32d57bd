/** Filters that objects of another resource make, such as the pods that a Service selects. */
import { copied } from '../runtime/bounded-cache.ts';
import type { RequestContext } from '../http/route.ts';
import { labelOf } from '../cluster/cache/selection.ts';
import type { StoredObject } from '../cluster/cache/stored-object.ts';
import { decoded, fromCopy, useCopy } from '../cluster/catalogue/use.ts';
import { among, shared, type ObjectFilter } from '../apimachinery/list/filters.ts';
import type { ResourceDefinition, SelectedBy } from '../cluster/catalogue/resource.ts';
import { visibleNamespaces, type ReadAccess } from '../apimachinery/visible-namespaces.ts';

type Labels = readonly (readonly [string, string])[];

/**
 * Of what the request's query names. The caller must be allowed to list what it names, which is looked up where the caller may: throws
 * 403 where that is nowhere. What is not there selects nothing.
 */
export async function selectedBy(
  access: ReadAccess,
  { selectedBy: all = {} }: Pick<ResourceDefinition<unknown>, 'selectedBy'>,
  context: RequestContext,
): Promise<readonly ObjectFilter<unknown>[]> {
  const filters: ObjectFilter<unknown>[] = [];
  for (const [parameter, by] of Object.entries(all)) {
    const name = context.query.get(parameter);
    // It may be cached, and must not keep the URL.
    if (name !== null) filters.push(await filterBy(access, by, copied(name), context));
  }
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
  const named = shared(`names=${name}`, (object) => object.name === name, among('name', [name]));
  const within: ObjectFilter<unknown> = ({ namespace }) =>
    info.namespace === '' ? visible?.has(namespace) !== false : namespace === info.namespace;
  const selectors = await fromCopy(catalogue, entry, context, (store) =>
    store.select([named], 'name', context, (objects) =>
      objects
        .filter(within)
        .map((object) => [object.namespace, Object.entries(labels(decoded(object)))] as const)
        .filter(([, selector]) => selector.length > 0),
    ),
  );
  return selecting(new Map(selectors));
}

/** What has all of the labels, by namespace. */
function selecting(selectors: ReadonlyMap<string, Labels>): ObjectFilter<unknown> {
  const [only, ...more] = selectors;
  const [first] = only?.[1] ?? [];
  return shared(
    `selected ${JSON.stringify([...selectors])}`,
    (object) => selectors.get(object.namespace)?.every(([label, value]) => labelOf(object, label) === value) === true,
    first === undefined || more.length > 0
      ? among('namespace', [...selectors.keys()])
      : among(`label ${first[0]}`, [first[1]]),
  );
}

/**
 * Calls `changed` when an object that a query names changes its selection, in whatever namespace, and `lost` when that can no longer be
 * followed, until the returned function is called.
 */
export async function followSelecting(
  { catalogue }: ReadAccess,
  { selectedBy: all = {} }: Pick<ResourceDefinition<unknown>, 'selectedBy'>,
  { query, info, signal }: RequestContext,
  { changed, lost }: { readonly changed: () => void; readonly lost: () => void },
): Promise<() => void> {
  const stops: (() => void)[] = [];
  const stop = (): void => stops.forEach((one) => one());
  try {
    for (const [parameter, { resource, labels }] of Object.entries(all)) {
      const name = query.get(parameter);
      if (name === null) continue;
      const use = await useCopy(catalogue, await catalogue.find(resource, signal), { signal });
      stops.push(() => use.release());
      const selected = (object: StoredObject<unknown> | undefined): string =>
        JSON.stringify(object === undefined ? {} : labels(decoded(object)));
      const { store, ended } = use.resource;
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

/** Do they select the same? */
export const sameSelection = (
  some: readonly ObjectFilter<unknown>[],
  others: readonly ObjectFilter<unknown>[],
): boolean => JSON.stringify(some.map(({ key }) => key)) === JSON.stringify(others.map(({ key }) => key));
