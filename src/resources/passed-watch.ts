/** A watch of a resource that is not cached: kube-apiserver's events, with the objects as /kapis shows them. */
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { badRequest, expired, forbidden, type StatusError } from '../runtime/errors.ts';
import { untilAborted } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import { framed } from '../http/response/streamed-body.ts';
import type { KubeRequest } from '../cluster/client/client.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { MalformedResponseError, membersOf } from '../cluster/cache/json-scan.ts';
import { lines } from '../cluster/cache/kube-responses.ts';
import { splitAtCommas } from '../apimachinery/list/field-path.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import type { WatchOptions } from '../apimachinery/list/list-options.ts';
import { passableShape } from '../apimachinery/list/kapis-parameters.ts';
import type { WatchQuery } from '../apimachinery/list/query.ts';
import type { View } from '../apimachinery/list/views.ts';
import { visibleNamespaces, type ReadAccess, type Visible } from '../apimachinery/visible-namespaces.ts';
import { beginWatch, eventStream, refuse, watchDuration, type WatchAnswer } from '../apimachinery/watch/response.ts';
import { frame, keepAliveFrame, keepAliveInterval, type EventType } from '../apimachinery/watch/frames.ts';
import { lastEventID, type ReadRequest } from './read-request.ts';
import type { UncachedResource } from './uncached-resource.ts';

/** A watch has a bookmark about each minute, and where it has none a client comes again. */
const handedOn = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'sendInitialEvents'];
/** Parameters of a watch that kube-apiserver filters. */
const passable = new Set(['label', ...Object.keys(passableShape)]);

/** Milliseconds after its duration until a watch is ended here. */
const grace = 2_000;
/** The longest time of setTimeout, in milliseconds. */
const maxTimer = 2 ** 31 - 1;

/** All of these selectors hold. */
const joined = (selectors: readonly string[]): string | undefined =>
  selectors.filter((text) => text !== '').join(',') || undefined;

const nameSelector = (name: string): string =>
  name === '' ? '' : `metadata.name=${name.replaceAll(/[\\,=]/g, String.raw`\$&`)}`;

/** kube-apiserver takes no path with a leading dot. */
const withoutLeadingDots = (selector: string): string =>
  splitAtCommas(selector)
    .map((term) => term.replace(/^\./, ''))
    .join(',');

function demandPassable(definition: ResourceDefinition<unknown>, query: URLSearchParams, visible: Visible): void {
  const { underlying } = definition;
  const wrong = [...query.keys()].find((name) => !passable.has(name));
  if (wrong !== undefined)
    throw badRequest(
      `${wrong}: a watch of ${underlying.resource} is passed on to kube-apiserver, which selects by labelSelector and fieldSelector alone`,
    );
  if (visible !== undefined)
    throw forbidden(
      underlying,
      '',
      `a watch of all namespaces needs the right to all of them; you may watch in ${visible.size}: name one`,
    );
}

/** `resumed`: the version of the last event that the client has. */
function upstreamQuery(
  { query, info }: RequestContext,
  { allowWatchBookmarks }: WatchOptions,
  duration: number,
  resumed: number | undefined,
): NonNullable<KubeRequest['query']> {
  return {
    ...Object.fromEntries(handedOn.map((name) => [name, query.get(name) ?? undefined])),
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

/** Returns the pieces of an event as the client gets it, and its version; errors are passed on as they are. */
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
  { format, body }: WatchAnswer,
  { show, hasInitialEvents, keepsAlive, signal }: Relay,
): Promise<void> {
  const sayAlive = (): void => {
    if (!body.isFull) body.write(framed(body.framing, [keepAliveFrame()]));
    silence?.refresh();
  };
  const silence = keepsAlive ? setTimeout(sayAlive, keepAliveInterval) : undefined;
  // Initial objects come in no order of their versions.
  let isInitial = hasInitialEvents;
  try {
    for await (const event of events) {
      isInitial &&= event.type === 'ADDED';
      const { pieces, version } = show(event);
      silence?.refresh();
      body.write(framed(body.framing, frame(format, event.type, pieces, isInitial ? undefined : version)));
      if (body.isFull) await untilAborted(body.drained(), signal);
    }
  } finally {
    clearTimeout(silence);
  }
}

interface PassedWatch {
  readonly resource: UncachedResource;
  readonly access: ReadAccess;
  readonly view: View<unknown>;
}

export async function passWatch(
  { req, res, context, granted: { mediaType, visible } }: ReadRequest,
  { options }: Pick<WatchQuery<unknown>, 'options'>,
  { resource, access, view }: PassedWatch,
): Promise<void> {
  const { definition } = resource;
  demandPassable(definition, context.query, visible);
  const ended = new AbortController();
  const over = AbortSignal.any([context.signal, ended.signal]);
  const keepsAlive = mediaType === eventStream;
  const resumed = keepsAlive ? lastEventID(req) : undefined;
  const duration = watchDuration(options.timeoutSeconds);
  const { body } = await resource.watch(context, upstreamQuery(context, options, duration, resumed), over);
  const begun = beginWatch(req, res, keepsAlive);
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };
  const recheck = async (): Promise<void> => {
    if ((await visibleNamespaces(recheckAccess, context, definition)) !== undefined)
      throw expired('the namespaces that you may watch are others now: list again');
  };
  let refusal: StatusError | undefined;
  context.onRecheck(recheck, (error) => {
    refusal = error;
    ended.abort();
  });
  // kube-apiserver authorized the watch for the user who began it.
  context.onUserChange(() => ended.abort());
  // kube-apiserver ends the watch, which a client that does not read never learns.
  const overdue = setTimeout(() => ended.abort(), Math.min(duration + grace, maxTimer));
  try {
    const show = (event: UpstreamEvent): ReturnType<typeof shown> => shown(event, view, resource);
    const hasInitialEvents = options.sendInitialEvents && resumed === undefined;
    const events = eventsOf(body as AsyncIterable<Buffer>);
    if (req.method !== 'HEAD') await relay(events, begun, { show, hasInitialEvents, keepsAlive, signal: over });
  } catch (error) {
    // Once begun, an answer can only end.
    if (!over.aborted)
      context.log.info('a watch that is passed on broke off', { resource: definition.underlying.resource, error });
  } finally {
    clearTimeout(overdue);
    body.destroy();
  }
  if (refusal === undefined) begun.body.end();
  else refuse(begun, refusal);
}
