/**
 * Keeps a copy of one resource current: list, then watch from the list's resourceVersion, for ever
 * (k8s.io/client-go tools/cache/reflector.go). Objects arrive as the bytes that kube-apiserver wrote and decoded once beside them.
 */
import type { Readable } from 'node:stream';
import type { Logger } from '../../runtime/logger.ts';
import { sleep, systemClock, type Clock } from '../../runtime/time.ts';
import type { KubeClient } from '../client/client.ts';
import { KubeError } from '../client/kube-error.ts';
import { keyOf, type ChangeType, type KubeObject } from '../client/kube-object.ts';
import { decodeWithoutManagedFields, membersOf } from './json-scan.ts';
import { readBody } from '../../runtime/read-body.ts';
import { splitList, withTypeMeta, type ListMeta } from './split-list.ts';

export interface ReflectorOptions<T> {
  readonly client: Pick<KubeClient, 'stream'>;
  /** Of the collection, such as /api/v1/nodes. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly log: Logger;
  readonly clock?: Clock;
  /**
   * Each watch is ended and resumed after about so many seconds, which proves that nothing was missed: `lastSignOfLife` is
   * never older while all is well, and soon fresh again after an absence. Unless stated a watch lasts 5 to 10 minutes, with a bookmark about each minute.
   */
  readonly watchSeconds?: number;
  /** Asks for metav1.PartialObjectMetadata. */
  readonly metadataOnly?: boolean;
  /**
   * What is kept of an object, which comes decoded without its managedFields. `bytes` is a view of a larger piece of memory: copy what is to
   * stay.
   */
  decode(object: KubeObject, bytes: Buffer): T;
  /** The whole state, after a list. */
  replace(items: readonly T[], resourceVersion: string): void;
  /** One change, in the order of the cluster. A DELETED item is the last state. */
  apply(type: ChangeType, item: T, resourceVersion: string): void;
  /** Nothing else has changed up to this resourceVersion. */
  bookmark(resourceVersion: string): void;
}

export interface Reflector {
  start(): void;
  stop(): void;
  /** The first list is complete. */
  hasSynced(): boolean;
  /** A watch is open now, so every change arrives at once. */
  isWatching(): boolean;
  /** When kube-apiserver last sent anything, in milliseconds since the epoch; 0 before the first time. */
  lastSignOfLife(): number;
  /** Makes a bookmark come within two seconds, not within a minute, if a watch is open. */
  hurry(): void;
}

const pageSize = 500;
const longestDelay = 30_000;
/** A watch has a bookmark about each minute (kube-apiserver's bookmarkFrequency), unless nothing ever changed. */
const longestSilence = 75_000;
/** A watch of so many seconds has its bookmark after one: kube-apiserver sends the last one 2 s before the end. */
export const hurriedSeconds = 3;
const hurried = new Error('a bookmark is wanted soon');

class Silence extends Error {}
const newline = 0x0a;
const closeBrace = 0x7d;

/** The media type of metav1.PartialObjectMetadata or its list. */
export const metadataAs = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`;

/** The headers of a request for an object of which the metadata are enough. */
export const metadataHeaders = { accept: metadataAs('PartialObjectMetadata') };

interface WatchEvent {
  readonly type: ChangeType | 'BOOKMARK';
  readonly object: KubeObject;
}

/** 410: the resourceVersion, or the list that was being paged through, is gone. */
const isExpired = (error: unknown): boolean =>
  error instanceof KubeError && (error.code === 410 || error.reason === 'Expired');

/** A cluster without streaming lists refuses the parameters, as invalid or as forbidden for watch. */
const isRefused = (error: unknown): boolean => error instanceof KubeError && (error.code === 400 || error.code === 422);

/** Throws KubeError for an event that tells of an error. */
export function eventOf(line: Buffer): WatchEvent {
  const event = decodeWithoutManagedFields(line) as
    WatchEvent | { readonly type: 'ERROR'; readonly object: { readonly code?: number } };
  if (event.type === 'ERROR') throw new KubeError(event.object.code ?? 500, event.object);
  return event;
}

/** The object's bytes in `{"type":"ADDED","object":{…}}`, which is how kube-apiserver writes an event, and in any other form. */
function objectBytes(line: Buffer, type: string): Buffer {
  const head = `{"type":"${type}","object":`;
  if (line.toString('latin1', 0, head.length) === head && line.at(-1) === closeBrace)
    return line.subarray(head.length, -1);
  const member = membersOf(line, 0, 'object').at(-1);
  if (member?.key !== 'object') throw new SyntaxError('a watch event has no object');
  return line.subarray(member.value, member.end);
}

export function createReflector<T>(options: ReflectorOptions<T>): Reflector {
  const {
    client,
    path,
    labelSelector,
    fieldSelector,
    log,
    clock = systemClock,
    watchSeconds,
    metadataOnly = false,
  } = options;
  const longestWait = watchSeconds === undefined ? longestDelay : watchSeconds * 1000;
  const silence = watchSeconds === undefined ? longestSilence : (watchSeconds + 5) * 1000;
  const stopped = new AbortController();

  let started = false;
  let synced = false;
  let watching = false;
  let lastSign = 0;
  /** From where to watch; undefined: list first. */
  let resourceVersion: string | undefined;
  /** The cluster is not known to refuse streaming lists. */
  let streamingLists = true;
  /** The last streaming list broke off: the next one is a plain list. */
  let brokeOff = false;
  /** A list in pages that expires on the way is asked for at once the next time. */
  let paged = true;
  let failures = 0;
  /** Ends the request that is open. */
  let giveUp: ((reason: Error) => void) | undefined;
  let hurrying = false;

  const alive = (): void => {
    lastSign = clock.now();
  };

  function replace(items: readonly T[], version: string): void {
    options.replace(items, version);
    resourceVersion = version;
    synced = true;
    failures = 0;
    log.info('listed', { path, items: items.length, resourceVersion: version });
  }

  /** One request; it is given up when nothing arrives for `silence`. Throws KubeError for any answer but 200. */
  async function request<R>(
    query: Record<string, string | number | undefined>,
    read: (chunks: AsyncIterable<Buffer>) => Promise<R>,
  ): Promise<R> {
    const silent = new AbortController();
    giveUp = (reason) => silent.abort(reason);
    let cancel: (() => void) | undefined;
    const heard = (): void => {
      cancel?.();
      cancel = clock.after(silence, () => silent.abort(new Silence(`nothing was heard for ${silence / 1000} s`)));
    };
    async function* chunks(body: Readable): AsyncGenerator<Buffer> {
      for await (const chunk of body) {
        heard();
        alive();
        yield chunk as Buffer;
      }
    }
    heard();
    try {
      const response = await client.stream(path, {
        query: { labelSelector, fieldSelector, ...query },
        ...(metadataOnly
          ? {
              headers: {
                accept:
                  query['watch'] === undefined
                    ? metadataAs('PartialObjectMetadataList')
                    : metadataAs('PartialObjectMetadata'),
              },
            }
          : {}),
        signal: AbortSignal.any([stopped.signal, silent.signal]),
        timeout: 60_000,
      });
      heard();
      if (response.status !== 200) {
        const text = (await readBody(chunks(response.body))).toString('utf8');
        throw KubeError.from(response.status, text);
      }
      alive();
      return await read(chunks(response.body));
    } catch (error) {
      throw silent.signal.aborted ? silent.signal.reason : error;
    } finally {
      cancel?.();
    }
  }

  async function list(): Promise<void> {
    const items: T[] = [];
    let metadata: ListMeta = {};
    do {
      const body = await request({ limit: paged ? pageSize : undefined, continue: metadata.continue }, readBody);
      const page = splitList(body);
      for (const bytes of page.items) {
        const object = decodeWithoutManagedFields(bytes) as KubeObject;
        const { kind, apiVersion } = page;
        items.push(
          object.kind === undefined
            ? options.decode({ kind, apiVersion, ...object }, withTypeMeta(bytes, kind, apiVersion))
            : options.decode(object, bytes),
        );
      }
      metadata = page.metadata;
    } while (metadata.continue !== undefined && metadata.continue !== '');
    paged = true;
    replace(items, metadata.resourceVersion ?? '');
  }

  /** Follows one watch to its end. `initial`: a streaming list, whose first events are the whole state. */
  async function watch(initial: boolean): Promise<void> {
    const seconds = hurrying ? hurriedSeconds : (watchSeconds ?? 300 + Math.floor(clock.random() * 300));
    let listed: Map<string, T> | undefined = initial ? new Map() : undefined;

    const handle = (line: Buffer): void => {
      const { type, object } = eventOf(line);
      const version = object.metadata.resourceVersion ?? '';
      if (type === 'BOOKMARK') {
        if (listed === undefined) {
          resourceVersion = version;
          options.bookmark(version);
        } else if (object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
          replace([...listed.values()], version);
          listed = undefined;
        }
      } else {
        const item = options.decode(object, objectBytes(line, type));
        if (listed === undefined) {
          resourceVersion = version;
          options.apply(type, item, version);
        } else if (type === 'DELETED') listed.delete(keyOf(object));
        else listed.set(keyOf(object), item);
      }
      failures = 0;
    };

    await request(
      {
        watch: 'true',
        allowWatchBookmarks: 'true',
        timeoutSeconds: seconds,
        ...(initial ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } : { resourceVersion }),
      },
      async (chunks) => {
        watching = !initial;
        for await (const line of lines(chunks)) {
          try {
            handle(line);
          } catch (error) {
            // An event that could not be handled is missing from the copy.
            if (!(error instanceof KubeError)) resourceVersion = undefined;
            throw error;
          }
          watching = listed === undefined;
        }
      },
    );
    if (listed !== undefined) throw new Error('a streaming list ended before it was complete');
  }

  async function once(): Promise<void> {
    if (resourceVersion !== undefined) return watch(false);
    if (!streamingLists || brokeOff) {
      brokeOff = false;
      return list();
    }
    try {
      await watch(true);
    } catch (error) {
      if (resourceVersion !== undefined) throw error;
      if (!isRefused(error)) {
        brokeOff = true;
        throw error;
      }
      streamingLists = false;
      log.info('the cluster has no streaming lists', { path, message: (error as Error).message });
      await list();
    }
  }

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      const begun = clock.now();
      const version = resourceVersion;
      const short = hurrying;
      let wait: number | undefined;
      try {
        await once();
        // A watch that ends at once with nothing to say is a fault of the other side.
        const idle = version !== undefined && resourceVersion === version && clock.now() - begun < 1000;
        if (idle) wait = backoff();
      } catch (error) {
        if (stopped.signal.aborted) return;
        // Where nothing changes, kube-apiserver may say nothing: whether the watch still lived shows in the next one.
        if (error === hurried || (error instanceof Silence && watching)) continue;
        const gone = isExpired(error);
        if (gone) {
          if (version === undefined) paged = false;
          resourceVersion = undefined;
        }
        // Who says that a watch cannot go on is there to be asked for a list, whatever failed before.
        wait = gone && (failures === 0 || version !== undefined) ? 0 : backoff();
        failures += 1;
        // A storage that is being prepared, as for a new CRD, asks for patience and is no fault.
        const level = error instanceof KubeError && error.code === 429 ? 'info' : 'warn';
        log.log(level, gone ? 'listing again' : 'a list or watch failed', { path, error, delay: wait });
      } finally {
        watching = false;
        if (short) hurrying = false;
      }
      if (wait !== undefined) await sleep(clock, wait, stopped.signal);
    }
  }

  /** Doubles with each failure in a row, with jitter: 0.25 to 0.5 s, 0.5 to 1 s, … 15 to 30 s, or half to the whole of watchSeconds. */
  function backoff(): number {
    const most = Math.min(longestWait, 500 * 2 ** Math.min(failures, 10));
    return (most / 2) * (1 + clock.random());
  }

  return {
    start() {
      if (started) return;
      started = true;
      void run();
    },
    stop: () => stopped.abort(),
    hasSynced: () => synced,
    isWatching: () => watching,
    lastSignOfLife: () => lastSign,
    hurry() {
      if (!watching || hurrying) return;
      hurrying = true;
      giveUp?.(hurried);
    },
  };
}

/** The non-empty lines of a stream, without their ends. A last line that the stream cut short is left out. */
export async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const rest = chunk.subarray(start, end);
      const line = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      begun = [];
      start = end + 1;
      if (line.length > 0) yield line;
    }
    if (start < chunk.length) begun.push(chunk.subarray(start));
  }
}
