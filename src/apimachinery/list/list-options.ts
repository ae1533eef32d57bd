/**
 * metav1.ListOptions: their names and descriptions, and which of them go together, as k8s.io/apimachinery
 * pkg/apis/meta/internalversion/validation has it.
 */
import type { Shape } from '../../http/request/parameters.ts';
import { described, oneOrNone, text } from '../../http/schema.ts';
import { badRequest, invalid, type StatusCause } from '../../runtime/errors.ts';

type AnySchema = Shape[string];

/** The options that lists and watches have. /kapis and /apis read flags and numbers in different ways. */
export const optionsShape = <F extends AnySchema, U extends AnySchema, S extends AnySchema>(
  flag: F,
  unset: U,
  seconds: S,
) => ({
  watch: described('Follow the changes instead of listing; over a WebSocket, one text message an event', unset),
  resourceVersion: described('Where to begin, or how old the answer may be', text.optional()),
  resourceVersionMatch: described(
    'How resourceVersion is meant; Exact is for /apis alone',
    oneOrNone('NotOlderThan', 'Exact').optional(),
  ),
  allowWatchBookmarks: described('BOOKMARK events that say how far the watch has come', unset),
  // Said at all it is about a watch.
  sendInitialEvents: described('Begin a watch with the present objects', flag),
  timeoutSeconds: described('How long a watch lasts, in seconds', seconds),
});

/** The options as a request has them. */
export interface SentOptions {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly sendInitialEvents?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
}

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

const maxVersion = 2n ** 64n - 1n;

/** Throws 400. */
export function requestedVersion({ resourceVersion: version = '' }: SentOptions): RequestedVersion {
  if (version === '') return 'latest';
  if (version === '0') return 'any';
  if (!/^\d{1,20}$/.test(version) || BigInt(version) > maxVersion)
    throw badRequest(`invalid resource version: ${JSON.stringify(version)}`);
  return Number(version) || 'any';
}

const forbidden = (field: string, why: string): StatusCause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${why}`,
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

/** Throws 400 for a version that cannot be read and 422 for what cannot be combined. */
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
 * Throws 400 for a version that cannot be read and 422 for what cannot be combined. A watch without a resourceVersion, or from "0", is a
 * streaming list though it does not say so (SetListOptionsDefaults).
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
