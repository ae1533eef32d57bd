/** The list language of /kapis (docs/api.md: page, limit, sortBy and the filters). */
import { isDeepStrictEqual } from 'node:util';
import { copied } from '../../runtime/bounded-cache.ts';
import { badRequest, StatusError } from '../../runtime/errors.ts';
import type { ParameterDescription } from '../../http/route.ts';
import type { OrderName } from '../../cluster/cache/order.ts';
import {
  all,
  labelOf,
  orderByValue,
  type ObjectFilter,
  type IndexName,
  type ObjectOrder,
} from '../../cluster/cache/selection.ts';
import { visitInSlices, type WaitingSlice } from '../../runtime/slice.ts';
import type { Store } from '../../cluster/cache/store.ts';
import { memoryOf, type StoredObject } from '../../cluster/cache/stored-object.ts';
import { compareTimes, parseTime, type Time } from '../../runtime/time.ts';
import { parseFieldPath, scalarAt, type Scalar } from './field-path.ts';
import { commonParameters, getParameters, kapisListParameters, listOnly } from './parameters.ts';
import { parseFields, type Projection } from './projection.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { matcher, parseFieldSelector, parseLabelSelector, type LabelRequirement } from './selectors.ts';

export type { ObjectFilter } from '../../cluster/cache/selection.ts';

export interface ListQuery<F> {
  /** From 1. */
  readonly page: number;
  /** -1: all. */
  readonly limit: number;
  /** A maintained order, or a path to sort by. */
  readonly order: OrderName | ObjectOrder<F>;
  /** `order` is read from its end. */
  readonly reversed: boolean;
  /** All must hold. */
  readonly filters: readonly ObjectFilter<F>[];
  readonly managedFields: boolean;
  /** Undefined: everything. */
  readonly fields: Projection | undefined;
  readonly pretty: boolean;
}

/** What of an object is shown. */
type Shown = Pick<ListQuery<unknown>, 'managedFields' | 'fields'>;

export const names = (parameters: readonly ParameterDescription[]): readonly string[] =>
  parameters.map(({ name }) => name);
/** `status` and those of the kind come to them. */
const listNames = names(kapisListParameters([]));
const getNames = names(getParameters);
const objectNames = [...getNames, 'watch'];
export const commonNames: readonly string[] = names(commonParameters);
/** Another name of an object, for people to read. */
const aliasOf = scalarAt(['metadata', 'annotations', 'platform.io/alias-name']);

const known = <F>({ statuses, filters, selectedBy = {} }: ResourceDefinition<F>): readonly string[] => [
  ...listNames,
  ...(statuses.length === 0 ? [] : ['status']),
  ...Object.keys(filters),
  ...Object.keys(selectedBy),
];

const unknownParameter = (name: string, knownNames: readonly string[]): StatusError =>
  badRequest(`unknown parameter ${JSON.stringify(name)}; the known ones are ${knownNames.join(', ')}`);

/** Throws 400 for a parameter that is none of these. */
export function demandKnown(query: URLSearchParams, knownNames: readonly string[]): void {
  const wrong = [...query.keys()].find((name) => !knownNames.includes(name));
  if (wrong !== undefined) throw unknownParameter(wrong, knownNames);
}

/** Throws 400 for a parameter that is unknown or given twice. */
function check(query: URLSearchParams, knownNames: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of query.keys()) {
    if (name === 'continue') throw badRequest('continue: /kapis has pages (page, limit); continue belongs to /apis');
    if (!knownNames.includes(name)) throw unknownParameter(name, knownNames);
    if (seen.has(name)) throw badRequest(`${name}: the parameter is given more than once`);
    seen.add(name);
  }
}

/**
 * Returns the parsed parameter; undefined if it is not given. A refusal names the parameter. The value is parsed from a copy, because it
 * may be cached and must not keep the URL alive.
 */
function parameter<T>(query: URLSearchParams, name: string, parse: (text: string) => T): T | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  try {
    return parse(copied(text));
  } catch (error) {
    if (error instanceof StatusError) throw badRequest(`${name}: ${error.message}`);
    throw error;
  }
}

function flag(text: string): boolean {
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw badRequest(`must be true (or 1) or false (or 0), not ${JSON.stringify(text)}`);
}

const whole =
  (least: number, words: string) =>
  (text: string): number => {
    const value = /^-?\d+$/.test(text) ? Number(text) : NaN;
    if (!Number.isSafeInteger(value) || value < least)
      throw badRequest(`must be ${words}, not ${JSON.stringify(text)}`);
    return value;
  };

const page = whole(1, 'a whole number from 1');
const limit = whole(-1, 'a whole number from 0, or -1 for all');
const seconds = whole(0, 'a whole number from 0');

/** Those of Kubernetes are read in its way afterwards, where anything but false is true and a negative number is none. */
function checkWatch(query: URLSearchParams): void {
  for (const name of ['watch', 'allowWatchBookmarks', 'sendInitialEvents']) parameter(query, name, flag);
  parameter(query, 'timeoutSeconds', seconds);
}

/** The query of `GET /kapis/…/{resources}`. Throws 400 naming what is wrong. */
export function parseListQuery<F>(query: URLSearchParams, definition: ResourceDefinition<F>): ListQuery<F> {
  check(query, known(definition));
  checkWatch(query);
  const ascending = parameter(query, 'ascending', flag) ?? false;
  return {
    page: parameter(query, 'page', page) ?? 1,
    limit: parameter(query, 'limit', limit) ?? -1,
    ...(parameter(query, 'sortBy', (text) => sorting(text, ascending)) ?? sorting('createTime', ascending)),
    filters: filtersOf(query, definition),
    ...shown(query),
    pretty: parsePretty(query),
  };
}

/** The query of a watch on /kapis; what says from where and for how long is ListOptions'. */
export function parseWatchQuery<F>(
  query: URLSearchParams,
  definition: ResourceDefinition<F>,
): Pick<ListQuery<F>, 'filters'> & Shown {
  check(query, known(definition));
  checkWatch(query);
  const senseless = listOnly.find((name) => query.has(name));
  if (senseless !== undefined) throw badRequest(`${senseless}: a watch has no pages and no order`);
  return { filters: filtersOf(query, definition), ...shown(query) };
}

/** The query of `GET /kapis/…/{resources}/{name}`. */
export function parseGetQuery(query: URLSearchParams): Pick<ListQuery<unknown>, 'pretty'> & Shown {
  check(query, getNames);
  return { ...shown(query), pretty: parsePretty(query) };
}

/** The same for what may be watched too, and is not. */
export function parseObjectQuery(query: URLSearchParams): ReturnType<typeof parseGetQuery> {
  check(query, objectNames);
  parameter(query, 'watch', flag);
  return { ...shown(query), pretty: parsePretty(query) };
}

/** Throws 400. */
export const parsePretty = (query: URLSearchParams): boolean => parameter(query, 'pretty', flag) ?? false;

const shown = (query: URLSearchParams): Shown => ({
  managedFields: parameter(query, 'managedFields', flag) ?? false,
  fields: parameter(query, 'fields', parseFields),
});

function sorting(sortBy: string, ascending: boolean): Pick<ListQuery<unknown>, 'order' | 'reversed'> {
  if (sortBy === 'name') return { order: 'name', reversed: !ascending };
  if (sortBy === 'createTime' || sortBy === 'creationTimestamp')
    return { order: ascending ? 'oldest' : 'newest', reversed: false };
  if (!sortBy.startsWith('.'))
    throw badRequest(
      `must be name, createTime, creationTimestamp or a path with a leading dot such as .status.nodeInfo.kubeletVersion, not ${JSON.stringify(sortBy)}`,
    );
  return { order: orderBy(parseFieldPath(sortBy), ascending), reversed: false };
}

/** A filter that can be shared by all who ask the same. `key`: what it asks, in full. */
export function shared<F>(
  key: string,
  passes: (object: StoredObject<F>) => boolean,
  within?: ObjectFilter<F>['within'],
): ObjectFilter<F> {
  return Object.assign((object: StoredObject<F>) => passes(object), {
    key,
    ...(within === undefined ? {} : { within }),
  });
}

/** The same for a value that is looked for in the object's bytes. */
const lookUp = (key: string, passes: (object: StoredObject<unknown>) => boolean): ObjectFilter<unknown> =>
  Object.assign(shared(key, passes), { isLookUp: true as const });

export const among = (index: IndexName, values: readonly string[]): ObjectFilter<unknown>['within'] => ({
  index,
  values,
});

/** No filter for a selector that selects everything. Throws 400. */
export function labelFilter(text: string, key = `labelSelector=${text}`): readonly ObjectFilter<unknown>[] {
  const selector = parseLabelSelector(text);
  return selector.length === 0 ? [] : [shared(key, matcher(selector, labelOf), withinOf(selector))];
}

/** An index knows all objects that can meet one of these. */
function withinOf(requirements: readonly LabelRequirement[]): ObjectFilter<unknown>['within'] {
  const one = requirements.find(({ operator }) => operator === '=' || operator === 'in');
  return one === undefined ? undefined : among(`label ${one.key}`, one.values);
}

function filtersOf<F>(query: URLSearchParams, definition: ResourceDefinition<F>): readonly ObjectFilter<F>[] {
  const filters: ObjectFilter<F>[] = [];
  const add = (
    name: string,
    make: (text: string, key: string) => ObjectFilter<F> | readonly ObjectFilter<F>[],
  ): void => {
    const made = parameter(query, name, (text) => make(text, `${name}=${text}`));
    if (made !== undefined) filters.push(...[made].flat());
  };
  const equal = (name: 'uid' | 'namespace'): void =>
    add(name, (text, key) => shared(key, (object) => object[name] === text, among(name, [text])));
  add('names', (text, key) => {
    const wanted = new Set(text.split(','));
    return shared(key, ({ name }) => wanted.has(name), among('name', [...wanted]));
  });
  add('name', (text, key) => shared(key, ({ name }) => name.includes(text)));
  equal('uid');
  equal('namespace');
  add('ownerReference', (text, key) =>
    shared(key, ({ ownerReferences }) => ownerReferences.some(({ uid }) => uid === text)),
  );
  add('ownerKind', (text, key) =>
    shared(key, ({ ownerReferences }) => ownerReferences.some(({ kind }) => kind === text)),
  );
  add('alias', (text, key) => {
    const wanted = text.toLowerCase();
    return lookUp(key, (object) =>
      String(aliasOf(object) ?? '')
        .toLowerCase()
        .includes(wanted),
    );
  });
  add('status', (text, key) => {
    const wanted = definition.statuses.find((status) => status.toLowerCase() === text.toLowerCase());
    if (wanted === undefined)
      throw badRequest(`must be one of ${definition.statuses.join(', ')}, not ${JSON.stringify(text)}`);
    return shared(key, (object) => {
      const found = definition.statusOf(object);
      return typeof found === 'string' ? found === wanted : found.includes(wanted);
    });
  });
  for (const [name, filter] of Object.entries(definition.filters))
    add(name, (text, key) => shared(key, (object) => filter.matches(object, text)));
  for (const name of ['label', 'labelSelector']) add(name, labelFilter);
  add('annotation', (text) =>
    parseLabelSelector(text, true).map((requirement) => {
      const annotation = scalarAt(['metadata', 'annotations', requirement.key]);
      const meets = matcher([requirement], (object: StoredObject<unknown>) => annotation(object) as string | undefined);
      return lookUp(`annotation ${JSON.stringify(requirement)}`, meets);
    }),
  );
  add('fieldSelector', (text) => parseFieldSelector(text, termsAre).map((term) => fieldFilter(term, definition)));
  return filters;
}

const termsAre = '; each of its terms is path=value or path!=value, as in spec.unschedulable=true';

/** A field that is missing is the empty text, unless Kubernetes has a default for it. */
export function fieldFilter<F>(
  { path, equals, value }: { path: string; equals: boolean; value: string },
  definition: ResourceDefinition<F>,
): ObjectFilter<F> {
  const segments = parseFieldPath(path);
  const key = `field ${JSON.stringify([segments, equals, value])}`;
  const label = definition.fieldLabels.find((one) => isDeepStrictEqual(parseFieldPath(one), segments));
  if (label !== undefined) return shared(key, (object) => (definition.fieldLabel(object, label) === value) === equals);
  const field = scalarAt(segments);
  return lookUp(key, (object) => {
    const found = field(object) ?? '';
    return ((typeof found === 'string' ? found : String(found)) === value) === equals;
  });
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

type Key =
  | { readonly rank: 0; readonly value: number }
  | { readonly rank: 1; readonly value: Time }
  | { readonly rank: 2; readonly value: string };

const number = /^-?\d+(\.\d+)?$/;

function keyOf(value: Scalar | undefined): Key | undefined {
  if (value === undefined) return undefined;
  const text = String(value);
  if (typeof value === 'number' || number.test(text)) return { rank: 0, value: Number(text) };
  const time = parseTime(text);
  return time === undefined ? { rank: 2, value: text } : { rank: 1, value: time };
}

/** Numbers as numbers, times as times, else by code point; in this order where they mix. What is missing comes last, either way. */
function orderBy(path: readonly string[], ascending: boolean): ObjectOrder<unknown> {
  const direction = ascending ? 1 : -1;
  const field = scalarAt(path);
  const text = JSON.stringify(path);
  const find = (object: StoredObject<unknown>): Key | undefined => keyOf(field(object));
  const memory = memoryOf(`sorted by ${text}`);
  const keyIn = (object: StoredObject<unknown>): Key | undefined => object.remembered(memory, find);
  const compare = (a: Key | undefined, b: Key | undefined): number =>
    a === undefined || b === undefined
      ? Number(a === undefined) - Number(b === undefined)
      : direction * compareKeys(a, b);
  return orderByValue(`${text} ${direction}`, keyIn, compare);
}

function compareKeys(a: Key, b: Key): number {
  if (a.rank === 0 && b.rank === 0) return a.value - b.value;
  if (a.rank === 1 && b.rank === 1) return compareTimes(a.value, b.value);
  if (a.rank === 2 && b.rank === 2) return byCodePoint(a.value, b.value);
  return a.rank - b.rank;
}

/** JavaScript's own comparison goes by UTF-16 units, where a surrogate stands before U+E000. */
export function byCodePoint(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1)
    if (a[i] !== b[i]) return (a.codePointAt(i) as number) - (b.codePointAt(i) as number);
  return a.length - b.length;
}
