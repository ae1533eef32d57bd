/** Queries of lists and watches on /kapis: their filters, and the page that a list returns. */
import { badParameters, invalidParameter, type QueryParameters } from '../../http/request/parameters.ts';
import { visitInSlices, type SignalSource } from '../../runtime/slice.ts';
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

/** Parameters that determine how a response shows an object. */
export type ShownQuery = Pick<ReturnType<typeof getParameters.parse>, 'managedFields' | 'fields' | 'pretty'>;

type WatchValues = ReturnType<KindParameters['watch']['parse']>;

interface Filtered<F> {
  /** Filters, all of which an object must pass. */
  readonly filters: readonly ObjectFilter<F>[];
}

export interface ListQuery<F> extends ShownQuery, Sorting, Filtered<F> {
  /** Page number; the first page is 1. */
  readonly page: number;
  /** Maximum number of items per page; -1 for all items. */
  readonly limit: number;
  /** Minimum version of the list. */
  readonly oldest: RequestedVersion;
}

export interface WatchQuery<F> extends ShownQuery, Filtered<F> {
  readonly options: WatchOptions;
}

/** Parsers of list and watch queries of one kind on /kapis. */
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

/**
 * Returns the minimum version of the list. /kapis cannot list the objects of an earlier version. Throws 400 and 422.
 */
function oldestOf(sent: SentOptions): RequestedVersion {
  const { resourceVersion, resourceVersionMatch } = listOptions(sent);
  if (resourceVersionMatch === 'Exact')
    throw badParameters([
      invalidParameter('resourceVersionMatch', 'Exact is not supported on /kapis; use NotOlderThan, or use /apis'),
    ]);
  return resourceVersion;
}

/** Returns the filters of a query. Filters that search the bytes of objects come last, because they cost most. */
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

/** Returns the objects that pass all filters. Selects from a copy, because the store may change in the meantime. */
export async function select<F>(
  objects: readonly StoredObject<F>[],
  filters: readonly ObjectFilter<F>[],
  waiting: SignalSource,
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
  /** Number of matching objects on all pages. */
  readonly total: number;
  /** Version of the store from which the page was taken. */
  readonly resourceVersion: number;
}

/**
 * Returns the requested page. A cached selection is only sliced, so the cost does not depend on the number of objects.
 */
export const pageOf = <F>(store: Store<F>, query: ListQuery<F>, waiting: SignalSource): Promise<ListPage<F>> =>
  store.select(query.filters, query.order, waiting, (objects, resourceVersion) => ({
    objects: partOf(objects, query),
    total: objects.length,
    resourceVersion,
  }));

function partOf<F>(
  objects: readonly StoredObject<F>[],
  { page: requestedPage, limit: size, reversed }: ListQuery<F>,
): readonly StoredObject<F>[] {
  if (size === -1) return requestedPage > 1 ? [] : reversed ? objects.toReversed() : objects.slice();
  const start = (requestedPage - 1) * size;
  if (!reversed) return objects.slice(start, start + size);
  const end = objects.length - start;
  return objects.slice(Math.max(end - size, 0), Math.max(end, 0)).toReversed();
}
