/**
 * Forwards the watch of an uncached resource to kube-apiserver. The events contain the objects in the form of /kapis.
 */
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { expired, forbidden, type StatusError } from '../runtime/errors.ts';
import { untilAborted } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import { badParameters, invalidParameter } from '../http/request/parameters.ts';
import { framed } from '../http/response/streamed-body.ts';
import type { KubeRequest } from '../cluster/client/client.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { MalformedResponseError, membersOf } from '../cluster/cache/json-scan.ts';
import { lines } from '../cluster/cache/kube-responses.ts';
import { splitAtCommas } from '../apimachinery/list/field-path.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import type { WatchOptions } from '../apimachinery/list/list-options.ts';
import { forwardableShape } from '../apimachinery/list/kapis-parameters.ts';
import type { WatchQuery } from '../apimachinery/list/query.ts';
import type { View } from '../apimachinery/list/views.ts';
import { visibleNamespaces, type ReadAccess, type Visible } from '../apimachinery/visible-namespaces.ts';
import { beginWatch, eventStream, refuse, watchDuration, type WatchResponse } from '../apimachinery/watch/response.ts';
import { frame, keepAliveFrame, keepAliveInterval, type EventType } from '../apimachinery/watch/frames.ts';
import { lastEventID, type ReadRequest } from './read-request.ts';
import type { UncachedResource } from './uncached-resource.ts';

/** Parameters that are forwarded unchanged. */
const forwarded = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'sendInitialEvents'];
/** Parameters that a forwarded watch accepts. */
const accepted = new Set(['label', ...Object.keys(forwardableShape)]);

/** Milliseconds after the requested end of a watch until this server ends the watch. */
const grace = 2_000;
/** Maximum delay of setTimeout in milliseconds. */
const maxTimer = 2 ** 31 - 1;

/** Combines selectors with a logical AND. */
const joined = (selectors: readonly string[]): string | undefined =>
  selectors.filter((text) => text !== '').join(',') || undefined;

const nameSelector = (name: string): string =>
  name === '' ? '' : `metadata.name=${name.replaceAll(/[\\,=]/g, String.raw`\$&`)}`;

/** Removes leading dots from paths, because kube-apiserver rejects them. */
const withoutLeadingDots = (selector: string): string =>
  splitAtCommas(selector)
    .map((term) => term.replace(/^\./, ''))
    .join(',');

function assertForwardable(definition: ResourceDefinition<unknown>, query: URLSearchParams, visible: Visible): void {
  const { underlying } = definition;
  const wrong = [...new Set(query.keys())].filter((name) => !accepted.has(name));
  const reason = `${underlying.resource} are not cached, so a watch supports only labelSelector and fieldSelector`;
  if (wrong.length > 0) throw badParameters(wrong.map((name) => invalidParameter(name, reason)));
  if (visible !== undefined)
    throw forbidden(
      underlying,
      '',
      `a watch of all namespaces requires the right in all namespaces; you have the right in ${visible.size} namespaces: specify one of them`,
    );
}

/** Returns the query for kube-apiserver. `resumed`: the version of the last event that the client received. */
function upstreamQuery(
  { query, info }: RequestContext,
  { allowWatchBookmarks }: WatchOptions,
  duration: number,
  resumed: number | undefined,
): NonNullable<KubeRequest['query']> {
  return {
    ...Object.fromEntries(forwarded.map((name) => [name, query.get(name) ?? undefined])),
    ...(resumed === undefined
      ? {}
      : { resourceVersion: resumed, sendInitialEvents: undefined, resourceVersionMatch: undefined }),
    labelSelector: joined([query.get('label') ?? '', query.get('labelSelector') ?? '']),
    fieldSelector: joined([nameSelector(info.name), withoutLeadingDots(query.get('fieldSelector') ?? '')]),
    watch: 'true',
    allowWatchBookmarks: String(allowWatchBookmarks),
    timeoutSeconds: Math.ceil(duration / 1000),
  };
}

interface UpstreamEvent {
  readonly type: EventType;
  readonly object: Buffer;
}

async function* eventsOf(body: AsyncIterable<Buffer>): AsyncGenerator<UpstreamEvent> {
  for await (const line of lines(body)) {
    const members = membersOf(line, 0);
    const part = (key: string): Buffer => {
      const member = members.find((candidate) => candidate.key === key);
      if (member === undefined) throw new MalformedResponseError(`a watch event has no ${key}`);
      return line.subarray(member.value, member.end);
    };
    yield { type: JSON.parse(part('type').toString('utf8')) as EventType, object: part('object') };
  }
}

/** Returns the pieces of an event for the client, and its version. Errors are forwarded unchanged. */
function shown(
  { type, object: bytes }: UpstreamEvent,
  view: View<unknown>,
  resource: UncachedResource,
): { readonly pieces: readonly Buffer[]; readonly version?: number } {
  if (type === 'ERROR') return { pieces: [bytes] };
  const object = JSON.parse(bytes.toString('utf8')) as KubeObject;
  const version = Number(object.metadata.resourceVersion) || 0;
  const isEnd = object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
  const pieces =
    type === 'BOOKMARK'
      ? view.bookmark(version, isEnd)
      : view.object(resource.stored({ kind: resource.definition.kind, ...object }, bytes));
  return { pieces, version };
}

interface Relay {
  readonly show: (event: UpstreamEvent) => ReturnType<typeof shown>;
  readonly hasInitialEvents: boolean;
  readonly keepsAlive: boolean;
  readonly signal: AbortSignal;
}

async function relay(
  events: AsyncIterable<UpstreamEvent>,
  { format, body }: WatchResponse,
  { show, hasInitialEvents, keepsAlive, signal }: Relay,
): Promise<void> {
  const sendKeepAlive = (): void => {
    if (!body.isFull) body.write(framed(body.framing, [keepAliveFrame()]));
    keepAlive?.refresh();
  };
  const keepAlive = keepsAlive ? setTimeout(sendKeepAlive, keepAliveInterval) : undefined;
  // Initial objects are not sorted by version.
  let isInitial = hasInitialEvents;
  try {
    for await (const event of events) {
      isInitial &&= event.type === 'ADDED';
      const { pieces, version } = show(event);
      keepAlive?.refresh();
      body.write(framed(body.framing, frame(format, event.type, pieces, isInitial ? undefined : version)));
      if (body.isFull) await untilAborted(body.drained(), signal);
    }
  } finally {
    clearTimeout(keepAlive);
  }
}

interface ForwardOptions {
  readonly resource: UncachedResource;
  readonly access: ReadAccess;
  readonly view: View<unknown>;
}

export async function forwardWatch(
  { req, res, context, granted: { mediaType, scope } }: ReadRequest,
  { options }: Pick<WatchQuery<unknown>, 'options'>,
  { resource, access, view }: ForwardOptions,
): Promise<void> {
  const { definition } = resource;
  assertForwardable(definition, context.query, scope.visible);
  const ended = new AbortController();
  const over = AbortSignal.any([context.signal, ended.signal]);
  const keepsAlive = mediaType === eventStream;
  const resumed = keepsAlive ? lastEventID(req) : undefined;
  const duration = watchDuration(options.timeoutSeconds);
  const { body } = await resource.watch(context, upstreamQuery(context, options, duration, resumed), over);
  const response = beginWatch(req, res, keepsAlive);
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };
  const recheck = async (): Promise<void> => {
    if ((await visibleNamespaces(recheckAccess, context, definition)) !== undefined)
      throw expired('the namespaces that you are allowed to watch have changed: list again');
  };
  let refusal: StatusError | undefined;
  context.onRecheck(recheck, (error) => {
    refusal = error;
    ended.abort();
  });
  // kube-apiserver authorized the watch only for the user who started it.
  context.onUserChange(() => ended.abort());
  // kube-apiserver ends the watch, but a client that does not read would keep the response open.
  const overdue = setTimeout(() => ended.abort(), Math.min(duration + grace, maxTimer));
  try {
    const show = (event: UpstreamEvent): ReturnType<typeof shown> => shown(event, view, resource);
    const hasInitialEvents = options.sendInitialEvents && resumed === undefined;
    const events = eventsOf(body as AsyncIterable<Buffer>);
    if (req.method !== 'HEAD') await relay(events, response, { show, hasInitialEvents, keepsAlive, signal: over });
  } catch (error) {
    // A response that has started cannot report errors.
    if (!over.aborted)
      context.log.info('forwarded watch ended prematurely', { resource: definition.underlying.resource, error });
  } finally {
    clearTimeout(overdue);
    body.destroy();
  }
  if (refusal === undefined) response.body.end();
  else refuse(response, refusal);
}
