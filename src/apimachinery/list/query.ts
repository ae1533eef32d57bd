/** Lists and watches of /kapis (docs/api.md): what their queries select, and the page that a list shows. */
import type { QueryParameters } from '../../http/request/parameters.ts';
import { badRequest } from '../../runtime/errors.ts';
import { visitInSlices, type WaitingSlice } from '../../runtime/slice.ts';
import { all, type ObjectFilter } from '../../cluster/cache/selection.ts';
import type { Store } from '../../cluster/cache/store.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { fieldFilter } from './filters.ts';
import {
  listOptions,
  watchOptions,
  type RequestedVersion,
  type SentOptions,
  type WatchOptions,
} from './list-options.ts';
import { parametersOf, type getParameters, type KindParameters } from './kapis-parameters.ts';
import type { Sorting } from './sorting.ts';

/** What a response shows of an object, and how. */
export type ShownQuery = Pick<ReturnType<typeof getParameters.parse>, 'managedFields' | 'fields' | 'pretty'>;

type WatchValues = ReturnType<KindParameters['watch']['parse']>;

interface Filtered<F> {
  /** All must hold. */
  readonly filters: readonly ObjectFilter<F>[];
}

export interface ListQuery<F> extends ShownQuery, Sorting, Filtered<F> {
  /** From 1. */
  readonly page: number;
  /** -1: all. */
  readonly limit: number;
  /** How old the list may be. */
  readonly oldest: RequestedVersion;
}

export interface WatchQuery<F> extends ShownQuery, Filtered<F> {
  readonly options: WatchOptions;
}

/** The queries of the objects of one kind on /kapis. */
export interface KindQueries<F> {
  readonly list: QueryParameters<ListQuery<F>>;
  readonly watch: QueryParameters<WatchQuery<F>>;
}

export function queriesOf<F>(definition: ResourceDefinition<F>): KindQueries<F> {
  const { list, watch, filters } = parametersOf(definition);
  const commonOf = (values: WatchValues): ShownQuery & Filtered<F> => ({
    managedFields: values.managedFields,
    fields: values.fields,
    pretty: values.pretty,
    filters: filtersOf(values, filters, definition),
  });
  return {
    list: {
      get descriptions() {
        return list.descriptions;
      },
      parse(query) {
        const values = list.parse(query);
        const { page, limit, sortBy, ascending } = values;
        return { page, limit, ...sortBy(ascending), ...commonOf(values), oldest: oldestOf(values) };
      },
    },
    watch: {
      get descriptions() {
        return watch.descriptions;
      },
      parse(query) {
        const values = watch.parse(query);
        return { ...commonOf(values), options: watchOptions(values) };
      },
    },
  };
}

/** A list of /kapis is never that of another time than now. Throws 400 and 422. */
function oldestOf(sent: SentOptions): RequestedVersion {
  const { resourceVersion, resourceVersionMatch } = listOptions(sent);
  if (resourceVersionMatch === 'Exact')
    throw badRequest('resourceVersionMatch: /kapis shows what is now; Exact belongs to /apis');
  return resourceVersion;
}

/** Filters that look for values in the bytes of objects come last. */
function filtersOf<F>(
  values: WatchValues,
  names: readonly string[],
  definition: ResourceDefinition<F>,
): readonly ObjectFilter<F>[] {
  const filters: ObjectFilter<F>[] = [];
  for (const name of names) {
    const made = (values as Readonly<Record<string, unknown>>)[name] as readonly ObjectFilter<F>[] | undefined;
    if (made !== undefined) filters.push(...made);
  }
  for (const term of values.fieldSelector ?? []) filters.push(fieldFilter(term, definition));
  return filters.toSorted((a, b) => Number(a.isLookUp ?? false) - Number(b.isLookUp ?? false));
}

/** The objects that pass all filters. The store may change meanwhile: what is selected from is as it was. */
export async function select<F>(
  objects: readonly StoredObject<F>[],
  filters: readonly ObjectFilter<F>[],
  waiting: WaitingSlice,
): Promise<readonly StoredObject<F>[]> {
  if (filters.length === 0) return objects;
  const passes = all(filters);
  const selected: StoredObject<F>[] = [];
  await visitInSlices(objects.slice(), waiting, (object) => {
    if (passes(object)) selected.push(object);
  });
  return selected;
}

export interface ListPage<F> {
  readonly objects: readonly StoredObject<F>[];
  /** Before paging. */
  readonly total: number;
  /** Of the store when the page was taken from it. */
  readonly resourceVersion: number;
}

/** The page that a query asks for. Of a selection that is kept it is a slice, whatever the number of objects. */
export const pageOf = <F>(store: Store<F>, query: ListQuery<F>, waiting: WaitingSlice): Promise<ListPage<F>> =>
  store.select(query.filters, query.order, waiting, (objects, resourceVersion) => ({
    objects: partOf(objects, query),
    total: objects.length,
    resourceVersion,
  }));

function partOf<F>(
  objects: readonly StoredObject<F>[],
  { page: wanted, limit: size, reversed }: ListQuery<F>,
): readonly StoredObject<F>[] {
  if (size === -1) return wanted > 1 ? [] : reversed ? objects.toReversed() : objects.slice();
  const start = (wanted - 1) * size;
  if (!reversed) return objects.slice(start, start + size);
  const end = objects.length - start;
  return objects.slice(Math.max(end - size, 0), Math.max(end, 0)).toReversed();
}
