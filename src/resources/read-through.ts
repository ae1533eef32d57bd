/**
 * What is not copied (docs/api.md) is asked for as the caller, each time, and then filtered, ordered and paged by the same list language.
 * A watch is passed on: kube-apiserver's frames, with the objects as /kapis shows them.
 */
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { holderOf } from '../auth/user.ts';
import { badGateway, badRequest, expired, forbidden, type StatusError } from '../runtime/errors.ts';
import type { Handler, RequestContext } from '../http/route.ts';
import { framed } from '../http/response/streamed-body.ts';
import type { KubeClient, KubeRequest, KubeResponse } from '../cluster/client/client.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { membersOf } from '../cluster/cache/json-scan.ts';
import { ManagedFields } from '../cluster/cache/managed-fields.ts';
import { mapConcurrent } from '../runtime/map-concurrent.ts';
import { readBody } from '../runtime/read-body.ts';
import { lines } from '../cluster/cache/reflector.ts';
import { splitList, withTypeMeta } from '../cluster/cache/split-list.ts';
import { Store } from '../cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../cluster/cache/stored-object.ts';
import { asCaller, demandReached } from '../apimachinery/reading.ts';
import { splitAtCommas } from '../apimachinery/list/field-path.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { lastEventID, type Judged, type KapisHandlers } from './kapis-handler.ts';
import { parseOldest, parseWatchOptions } from '../apimachinery/list/list-options.ts';
import type { ListMemory } from '../cluster/catalogue/list-memory.ts';
import type { MemoryShare } from '../cluster/catalogue/memory-limit.ts';
import { parseListQuery, parseObjectQuery, parseWatchQuery } from '../apimachinery/list/query.ts';
import { collectionPath, type ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { Slots } from '../runtime/slots.ts';
import { visibleNamespaces, type ReadAccess, type Visible } from '../apimachinery/visible-namespaces.ts';
import { beginWatch, eventStream, refuse, watchDuration } from '../apimachinery/watch/response.ts';
import { frame, keepAliveFrame, keepAliveInterval, type EventType } from '../apimachinery/watch/frames.ts';

/** A watch of what is not cached has a connection to kube-apiserver of its own. */
export const passedWatches = (): Slots =>
  new Slots({ what: 'watches of resources that are not cached', total: 100, perUser: 25 });

export interface ReadThroughOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly access: ReadAccess;
  readonly memory: ListMemory;
  /** Shared by all resources. */
  readonly watches: Slots;
}

const pageSize = 500;
/** Lists of single namespaces at once. */
const atOnce = 8;
/** An object of the cluster has at most 1.5 MiB in etcd, and more only where another server makes it up. */
const largestObject = 16 * 1024 * 1024;
/** A watch has a bookmark about each minute, and where it has none a client comes again. */
const handedOn = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'sendInitialEvents'];
/** What a watch that kube-apiserver filters can have. */
const watchable = new Set([
  ...handedOn,
  'watch',
  'label',
  'allowWatchBookmarks',
  'timeoutSeconds',
  'timeout',
  'managedFields',
  'fields',
  'pretty',
]);

/** Kubernetes gives no resourceVersion to what is not stored, such as metrics. */
function versioned(object: KubeObject, bytes: Buffer): [KubeObject, Buffer] {
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') return [object, bytes];
  const at = membersOf(bytes, bytes.indexOf('{')).find(({ key }) => key === 'metadata');
  if (at === undefined) throw new SyntaxError('an object has no metadata');
  const { resourceVersion: _, ...rest } = metadata;
  const known = { ...rest, resourceVersion: '0' };
  return [
    { ...object, metadata: known },
    Buffer.concat([bytes.subarray(0, at.value), Buffer.from(JSON.stringify(known)), bytes.subarray(at.end)]),
  ];
}

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

interface Listed {
  readonly objects: StoredObject<unknown>[];
  readonly resourceVersion: number;
}

/** An answer of 200. Throws StatusError. */
async function ask(caller: Pick<KubeClient, 'stream'>, path: string, options: KubeRequest): Promise<KubeResponse> {
  try {
    const response = await caller.stream(path, options);
    if (response.status === 200) return response;
    throw KubeError.from(response.status, (await bounded(response.body)).toString('utf8'));
  } catch (error) {
    options.signal?.throwIfAborted();
    throw error instanceof KubeError ? error.toStatusError() : error;
  }
}

export function readThroughHandlers(
  definition: ResourceDefinition<unknown>,
  { client, access, memory, watches }: ReadThroughOptions,
): KapisHandlers {
  const { underlying, kind } = definition;
  const answers = new ResourceResponses(definition);
  const managedFields = new ManagedFields();
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };

  const store = (object: KubeObject, bytes: Buffer): StoredObject<unknown> => {
    try {
      return storeObject(...versioned(object, bytes), {
        selfLink: ({ metadata: { namespace, name } }) => `${collectionPath(underlying, namespace)}/${name}`,
        fields: (decoded) => definition.fields(decoded),
        managedFields,
      });
    } catch (cause) {
      throw badGateway(`the server of ${underlying.resource} answered with an object that is none`, { cause });
    }
  };

  /** Everything of one namespace, or of all; `count` is told how many bytes arrive. */
  async function listAll(
    caller: Pick<KubeClient, 'stream'>,
    { namespace, name }: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
    count: (bytes: number) => void,
  ): Promise<Listed> {
    const objects: StoredObject<unknown>[] = [];
    let next: string | undefined;
    let resourceVersion = 0;
    do {
      const { body } = await ask(caller, collectionPath(underlying, namespace), {
        // Who may list one name alone is asked for it.
        query: {
          limit: pageSize,
          continue: next,
          fieldSelector: name === '' ? undefined : `metadata.name=${name}`,
        },
        signal,
      });
      const chunks: Buffer[] = [];
      let raw = 0;
      for await (const chunk of body) {
        raw += (chunk as Buffer).length;
        count((chunk as Buffer).length);
        chunks.push(chunk as Buffer);
      }
      const { items, metadata, ...type } = splitList(Buffer.concat(chunks));
      for (const bytes of items) {
        const object = JSON.parse(bytes.toString('utf8')) as KubeObject;
        const stored =
          object.kind === undefined
            ? store({ ...type, ...object }, withTypeMeta(bytes, type.kind, type.apiVersion))
            : store(object, bytes);
        count(stored.length + stored.packedSize);
        objects.push(stored);
      }
      // The text of the page is no longer needed.
      count(-raw);
      next = metadata.continue === '' ? undefined : metadata.continue;
      resourceVersion = Number(metadata.resourceVersion ?? 0) || 0;
    } while (next !== undefined);
    return { objects, resourceVersion };
  }

  async function list({ user, info, signal }: RequestContext, visible: Visible, share: MemoryShare): Promise<Listed> {
    if (visible !== undefined && !definition.namespaced)
      throw forbidden(
        underlying,
        '',
        `this server has no copy of ${underlying.resource}, and you may not list all: name one`,
      );
    const caller = asCaller(client, user);
    let bytes = 0;
    const count = (more: number): void => {
      bytes += more;
      share.hold(bytes);
    };
    const namespaces = visible === undefined ? [definition.namespaced ? info.namespace : ''] : [...visible].toSorted();
    const lists = await mapConcurrent(namespaces, atOnce, (namespace) =>
      listAll(caller, { namespace, name: info.name }, signal, count),
    );
    return {
      objects: lists.flatMap(({ objects }) => objects),
      // From the oldest on nothing is missed.
      resourceVersion: Math.min(...lists.map(({ resourceVersion }) => resourceVersion)),
    };
  }

  async function watch({ mediaType, visible }: Judged, ...[req, res, context]: Parameters<Handler>): Promise<void> {
    const { user, info, query, signal } = context;
    const view = answers.view(parseWatchQuery(query, definition));
    const { timeoutSeconds, allowWatchBookmarks, sendInitialEvents } = parseWatchOptions(query);
    const wrong = [...query.keys()].find((name) => !watchable.has(name));
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
    const ended = new AbortController();
    const over = AbortSignal.any([signal, ended.signal]);
    const duration = watchDuration(timeoutSeconds);
    const sse = mediaType === eventStream;
    const resumed = sse ? lastEventID(req) : undefined;
    const { body } = await ask(
      asCaller(client, user),
      collectionPath(underlying, definition.namespaced ? info.namespace : ''),
      {
        query: {
          ...Object.fromEntries(handedOn.map((name) => [name, query.get(name) ?? undefined])),
          ...(resumed === undefined
            ? {}
            : { resourceVersion: resumed, sendInitialEvents: undefined, resourceVersionMatch: undefined }),
          labelSelector: joined([query.get('label') ?? '', query.get('labelSelector') ?? '']),
          fieldSelector: joined([nameSelector(info.name), withoutLeadingDots(query.get('fieldSelector') ?? '')]),
          watch: 'true',
          allowWatchBookmarks: String(allowWatchBookmarks),
          timeoutSeconds: Math.ceil(duration / 1000),
        },
        signal: over,
      },
    );
    const begun = beginWatch(req, res, sse);
    const { format, body: told } = begun;
    const sayAlive = (): void => {
      if (!told.isFull) told.write(framed(told.framing, [keepAliveFrame()]));
      silence?.refresh();
    };
    const silence = sse ? setTimeout(sayAlive, keepAliveInterval) : undefined;
    /** The objects that are there come in no order of their versions. */
    let isInitial = sendInitialEvents && resumed === undefined;
    const tell = async (pieces: readonly Buffer[]): Promise<void> => {
      silence?.refresh();
      told.write(framed(told.framing, pieces));
      if (told.isFull) await told.drained();
    };
    let refusal: StatusError | undefined;
    const recheck = async (): Promise<void> => {
      if ((await visibleNamespaces(recheckAccess, context, definition)) !== undefined)
        throw expired('the namespaces that you may watch are others now: list again');
    };
    context.onRecheck(recheck, (error) => {
      refusal = error;
      ended.abort();
    });
    // kube-apiserver authorized the watch for the user who began it.
    context.onUserChange(() => ended.abort());
    try {
      if (req.method !== 'HEAD')
        for await (const line of lines(body as AsyncIterable<Buffer>)) {
          const members = membersOf(line, 0);
          const part = (key: string): Buffer => {
            const member = members.find((candidate) => candidate.key === key);
            if (member === undefined) throw new SyntaxError(`a watch event has no ${key}`);
            return line.subarray(member.value, member.end);
          };
          const type = JSON.parse(part('type').toString('utf8')) as EventType;
          const bytes = part('object');
          isInitial &&= type === 'ADDED';
          if (type === 'ERROR') {
            await tell(frame(format, type, [bytes]));
            continue;
          }
          const object = JSON.parse(bytes.toString('utf8')) as KubeObject;
          const version = Number(object.metadata.resourceVersion) || 0;
          const isEnd = object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
          const shown =
            type === 'BOOKMARK' ? view.bookmark(version, isEnd) : view.object(store({ kind, ...object }, bytes));
          await tell(frame(format, type, shown, isInitial ? undefined : version));
        }
    } catch (error) {
      // Once begun, an answer can only end.
      if (!over.aborted)
        context.log.info('a watch that is passed on broke off', { resource: underlying.resource, error });
    } finally {
      clearTimeout(silence);
      body.destroy();
    }
    if (refusal === undefined) told.end();
    else refuse(begun, refusal);
  }

  async function placed(...request: Parameters<typeof watch>): Promise<void> {
    const giveBack = watches.take(holderOf(request[3].user));
    try {
      await watch(...request);
    } finally {
      giveBack();
    }
  }

  return {
    async collection(judged, req, res, context) {
      if (context.info.verb === 'watch') return placed(judged, req, res, context);
      const query = parseListQuery(context.query, definition);
      const oldest = parseOldest(context.query);
      const share = memory.share(holderOf(context.user), underlying.resource);
      try {
        const { objects, resourceVersion } = await list(context, judged.visible, share);
        demandReached(oldest, resourceVersion);
        const once = new Store<unknown>();
        once.replace(objects, resourceVersion);
        const filters = [...judged.selected, ...query.filters];
        await answers.list(req, res, context, { ...query, filters }, { store: once, lasting: false });
      } finally {
        share.release();
      }
    },
    async object(judged, req, res, context) {
      if (context.info.verb === 'watch') return placed(judged, req, res, context);
      const query = parseObjectQuery(context.query);
      const { info, user, signal } = context;
      const path = collectionPath(underlying, definition.namespaced ? info.namespace : '');
      const { body } = await ask(asCaller(client, user), `${path}/${encodeURIComponent(info.name)}`, { signal });
      const bytes = await bounded(body);
      const object = JSON.parse(bytes.toString('utf8')) as KubeObject;
      await answers.object(req, res, context, query, store(object, bytes));
    },
  };
}

const bounded = (body: AsyncIterable<unknown>): Promise<Buffer> =>
  readBody(body, largestObject, () => badGateway(`the answer is larger than ${largestObject} bytes`));
