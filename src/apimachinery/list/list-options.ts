/**
 * metav1.ListOptions: names, descriptions and valid combinations, as in k8s.io/apimachinery
 * pkg/apis/meta/internalversion/validation.
 */
import type { Shape } from '../../http/request/parameters.ts';
import { described, oneOrNone, text } from '../../http/schema.ts';
import { badRequest, invalid, type StatusCause } from '../../runtime/errors.ts';

type AnySchema = Shape[string];

/** Returns the options of lists and watches. /kapis and /apis parse flags and numbers differently. */
export const optionsShape = <F extends AnySchema, U extends AnySchema, S extends AnySchema>(
  flag: F,
  unset: U,
  seconds: S,
) => ({
  watch: described('Stream changes instead of listing; over a WebSocket, one text message per event', unset),
  resourceVersion: described(
    'Version from which a watch starts, or the oldest version that a list may have',
    text.optional(),
  ),
  resourceVersionMatch: described(
    'How to match resourceVersion; Exact is supported only on /apis',
    oneOrNone('NotOlderThan', 'Exact').optional(),
  ),
  allowWatchBookmarks: described('Send BOOKMARK events that report the progress of the watch', unset),
  // This parameter has no default, because even false is valid only for a watch.
  sendInitialEvents: described('Start a watch with the existing objects', flag),
  timeoutSeconds: described('Duration of a watch in seconds', seconds),
});

/** Options as parsed from the query. */
export interface SentOptions {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly sendInitialEvents?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
}

/** Requested version: 'latest' means that resourceVersion is unset, 'any' that it is "0". */
export type RequestedVersion = 'latest' | 'any' | number;

export interface ListOptions {
  readonly resourceVersion: RequestedVersion;
  readonly resourceVersionMatch: '' | 'NotOlderThan' | 'Exact';
  /** Maximum items, 0 for no limit. */
  readonly limit: number;
  /** Continue token; '' for the first page. */
  readonly continue: string;
}

export interface WatchOptions {
  readonly resourceVersion: RequestedVersion;
  readonly sendInitialEvents: boolean;
  readonly allowWatchBookmarks: boolean;
  /** Seconds; undefined if the server chooses the duration. */
  readonly timeoutSeconds: number | undefined;
}

const maxVersion = 2n ** 64n - 1n;

/** Parses resourceVersion. Throws 400. */
export function requestedVersion({ resourceVersion: version = '' }: SentOptions): RequestedVersion {
  if (version === '') return 'latest';
  if (version === '0') return 'any';
  if (!/^\d{1,20}$/.test(version) || BigInt(version) > maxVersion)
    throw badRequest(`invalid resource version: ${JSON.stringify(version)}`);
  return Number(version) || 'any';
}

const forbidden = (field: string, problem: string): StatusCause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${problem}`,
  field,
});
const notSupported = (field: string, value: string, supported: readonly string[]): StatusCause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map((one) => JSON.stringify(one)).join(', ')}`,
  field,
});
const matchField = 'resourceVersionMatch';

function refuse(causes: readonly StatusCause[]): void {
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes);
}

/** Validates the options of a list. Throws 400 for an invalid version and 422 for invalid combinations. */
export function listOptions(sent: SentOptions): ListOptions {
  const { resourceVersionMatch: match = '', resourceVersion: version = '', continue: token = '', limit = 0 } = sent;
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
  if (sent.sendInitialEvents !== undefined)
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  refuse(causes);
  return {
    resourceVersion: requestedVersion(sent),
    resourceVersionMatch: match as ListOptions['resourceVersionMatch'],
    limit: Math.max(limit, 0),
    continue: token,
  };
}

/**
 * Validates the options of a watch. Throws 400 for an invalid version and 422 for invalid combinations. A watch without
 * a resourceVersion, or from "0", starts with the existing objects, even without sendInitialEvents
 * (SetListOptionsDefaults).
 */
export function watchOptions(sent: SentOptions): WatchOptions {
  const { allowWatchBookmarks = false, timeoutSeconds = 0 } = sent;
  const isLegacy =
    (sent.resourceVersionMatch ?? '') === '' &&
    sent.sendInitialEvents === undefined &&
    ['', '0'].includes(sent.resourceVersion ?? '');
  const { resourceVersionMatch: match = '', sendInitialEvents } = isLegacy
    ? { resourceVersionMatch: 'NotOlderThan', sendInitialEvents: true }
    : sent;
  const causes: StatusCause[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan')
    causes.push(forbidden(matchField, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  if (match !== '') {
    if (sendInitialEvents === undefined)
      causes.push(
        forbidden(matchField, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'),
      );
    if (match !== 'NotOlderThan') causes.push(notSupported(matchField, match, ['NotOlderThan']));
    if ((sent.continue ?? '') !== '')
      causes.push(forbidden(matchField, 'resourceVersionMatch is forbidden when continue is provided'));
  }
  refuse(causes);
  return {
    resourceVersion: requestedVersion(sent),
    sendInitialEvents: sendInitialEvents ?? false,
    allowWatchBookmarks,
    timeoutSeconds: timeoutSeconds <= 0 ? undefined : timeoutSeconds,
  };
}
