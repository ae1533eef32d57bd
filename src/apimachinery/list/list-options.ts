/** metav1.ListOptions of a request, decoded and validated as k8s.io/apimachinery pkg/apis/meta/internalversion/validation does. */
import { copied } from '../../runtime/bounded-cache.ts';
import { badRequest, invalid, type StatusCause } from '../../runtime/errors.ts';
import { among, fieldFilter, labelFilter, shared, type ObjectFilter } from './query.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { parseFieldSelector } from './selectors.ts';

/** 'latest' is an unset resourceVersion, 'any' is "0". */
export type RequestedVersion = 'latest' | 'any' | number;

export interface ListOptions {
  readonly resourceVersion: RequestedVersion;
  readonly resourceVersionMatch: '' | 'NotOlderThan' | 'Exact';
  /** 0: no limit. */
  readonly limit: number;
  /** '' for the first page. */
  readonly continue: string;
}

export interface WatchOptions {
  readonly resourceVersion: RequestedVersion;
  readonly sendInitialEvents: boolean;
  readonly allowWatchBookmarks: boolean;
  /** Seconds; undefined: as long as the server likes. */
  readonly timeoutSeconds: number | undefined;
}

/** Convert_Slice_string_To_bool: anything but "false" and "0" is true. */
function flag(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  return text === null ? undefined : text.toLowerCase() !== 'false' && text !== '0';
}

const most = { int64: 2n ** 63n - 1n, uint64: 2n ** 64n - 1n };

function int64(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = /^[+-]?\d{1,19}$/.test(text) ? BigInt(text.replace('+', '')) : undefined;
  if (value === undefined || value > most.int64 || value < -most.int64 - 1n)
    throw badRequest(`${name}: ${JSON.stringify(text)} is no whole number of 64 bits`);
  return Number(value);
}

function requestedVersion(query: URLSearchParams): RequestedVersion {
  const text = query.get('resourceVersion') ?? '';
  if (text === '') return 'latest';
  if (text === '0') return 'any';
  if (!/^\d{1,20}$/.test(text) || BigInt(text) > most.uint64)
    throw badRequest(`invalid resource version: ${JSON.stringify(text)}`);
  return Number(text) || 'any';
}

const forbidden = (field: string, why: string): StatusCause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${why}`,
  field,
});
const notSupported = (field: string, value: string, supported: readonly string[]): StatusCause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map((text) => JSON.stringify(text)).join(', ')}`,
  field,
});
const matchField = 'resourceVersionMatch';

function refuse(causes: readonly StatusCause[]): void {
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes);
}

/** Both are read of every list and of every watch, though each uses one of them. */
const numbers = (
  query: URLSearchParams,
): { readonly limit: number | undefined; readonly timeoutSeconds: number | undefined } => ({
  limit: int64(query, 'limit'),
  timeoutSeconds: int64(query, 'timeoutSeconds'),
});

/** Throws 400 for what cannot be read and 422 for what cannot be combined. */
export function parseListOptions(query: URLSearchParams): ListOptions {
  const { limit = 0 } = numbers(query);
  const match = query.get(matchField) ?? '';
  const version = query.get('resourceVersion') ?? '';
  const token = query.get('continue') ?? '';
  const causes: StatusCause[] = [];
  if (match !== '') {
    if (version === '')
      causes.push(forbidden(matchField, 'resourceVersionMatch is forbidden unless resourceVersion is provided'));
    if (token !== '') causes.push(forbidden(matchField, 'resourceVersionMatch is forbidden when continue is provided'));
    if (match !== 'Exact' && match !== 'NotOlderThan')
      causes.push(notSupported(matchField, match, ['Exact', 'NotOlderThan', '']));
    if (match === 'Exact' && version === '0')
      causes.push(forbidden(matchField, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.has('sendInitialEvents'))
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  refuse(causes);
  return {
    resourceVersion: requestedVersion(query),
    resourceVersionMatch: match as ListOptions['resourceVersionMatch'],
    limit: Math.max(limit, 0),
    continue: token,
  };
}

/**
 * Throws 400 for what cannot be read and 422 for what cannot be combined. A watch without a resourceVersion, or from "0", is a streaming
 * list though it does not say so (SetListOptionsDefaults).
 */
export function parseWatchOptions(query: URLSearchParams): WatchOptions {
  const asked = { match: query.get(matchField) ?? '', sendInitialEvents: flag(query, 'sendInitialEvents') };
  const isLegacy =
    asked.match === '' &&
    asked.sendInitialEvents === undefined &&
    ['', '0'].includes(query.get('resourceVersion') ?? '');
  const { match, sendInitialEvents } = isLegacy ? { match: 'NotOlderThan', sendInitialEvents: true } : asked;
  const { timeoutSeconds } = numbers(query);
  const causes: StatusCause[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan')
    causes.push(forbidden(matchField, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  if (match !== '') {
    if (sendInitialEvents === undefined)
      causes.push(
        forbidden(matchField, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'),
      );
    if (match !== 'NotOlderThan') causes.push(notSupported(matchField, match, ['NotOlderThan']));
    if ((query.get('continue') ?? '') !== '')
      causes.push(forbidden(matchField, 'resourceVersionMatch is forbidden when continue is provided'));
  }
  refuse(causes);
  return {
    resourceVersion: requestedVersion(query),
    sendInitialEvents: sendInitialEvents ?? false,
    allowWatchBookmarks: flag(query, 'allowWatchBookmarks') ?? false,
    timeoutSeconds: timeoutSeconds === undefined || timeoutSeconds <= 0 ? undefined : timeoutSeconds,
  };
}

/** How old a list of /kapis may be, which is never that of another time than now. Throws 400 and 422. */
export function parseOldest(query: URLSearchParams): RequestedVersion {
  const { resourceVersion, resourceVersionMatch } = parseListOptions(query);
  if (resourceVersionMatch === 'Exact')
    throw badRequest('resourceVersionMatch: /kapis shows what is now; Exact belongs to /apis');
  return resourceVersion;
}

/** The resourceVersion of a get. Throws 400. */
export const parseGetOptions = (query: URLSearchParams): RequestedVersion => requestedVersion(query);

/**
 * labelSelector and fieldSelector as /apis takes them: only the resource's own field labels. `name`: of the single object that is
 * asked for by its path. Throws 400.
 */
export function selectorsOf<F>(
  query: URLSearchParams,
  definition: ResourceDefinition<F>,
  name: string,
): readonly ObjectFilter<F>[] {
  const filters: ObjectFilter<F>[] = [...labelFilter(copied(query.get('labelSelector') ?? ''))];
  const terms = parseFieldSelector(copied(query.get('fieldSelector') ?? ''));
  for (const term of terms) {
    if (!definition.fieldLabels.includes(term.path)) throw badRequest(`field label not supported: ${term.path}`);
    filters.push(fieldFilter(term, definition));
  }
  if (name === '') return filters;
  const named = terms.find(({ path, equals }) => path === 'metadata.name' && equals);
  if (terms.length > 0 && named?.value !== name)
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  filters.push(shared(`object=${name}`, (object) => object.name === name, among('name', [name])));
  return filters;
}
