/** Streams new records. Each record is a line of JSON or a server-sent event. */
import { once } from 'node:events';
import { internalError, StatusError } from '../runtime/errors.ts';
import { untilAborted } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import { framed, StreamedBody } from '../http/response/streamed-body.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { LogsRequest } from './handler.ts';
import { followByPolling } from './stores/polling.ts';
import type { Cut, LogRecord, LogStore, Selection } from './stores/log-store.ts';
import { eventStream } from '../apimachinery/watch/response.ts';
import { keepAliveFrame, keepAliveInterval } from '../apimachinery/watch/frames.ts';

export interface Following {
  /** One of `followTypes`. */
  readonly mediaType: string;
  readonly store: Pick<LogStore, 'query' | 'follow'>;
  readonly selection: Selection;
  /** Authorizes the caller again. Throws the error that ends the tail if the caller's rights have changed. */
  readonly recheck: () => Promise<void>;
  /** Signal that is aborted with the reason when the timeout expires or the configured store changes. */
  readonly ended: AbortSignal;
}

/** Media types of live tails. */
export const followTypes = ['application/json', 'application/x-ndjson', 'application/jsonl', eventStream];

const empty = Buffer.from('\n');

/** Encodes a value. Server-sent events other than records have an event name, so that clients can distinguish them. */
const frame = (sse: boolean, value: object, event?: string): Buffer =>
  Buffer.from(
    sse
      ? `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`
      : `${JSON.stringify(value)}\n`,
  );

const statusOf = (error: unknown, { auditID }: RequestContext): StatusError =>
  error instanceof StatusError
    ? error
    : error instanceof KubeError
      ? error.toStatusError()
      : internalError(auditID, error);

function newRecords(
  store: Following['store'],
  selection: Selection,
  signal: AbortSignal,
): AsyncGenerator<readonly LogRecord[], Cut> {
  if (selection.namespaces?.size === 0) return emptyTail(signal);
  return store.follow === undefined ? followByPolling(store, selection, signal) : store.follow(selection, signal);
}

/**
 * Yields nothing until aborted, for callers who are not allowed to see any logs. If the tail ended at once, clients
 * would reconnect repeatedly.
 */
// oxlint-disable-next-line require-yield -- there are no records
async function* emptyTail(signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

export async function followLogs(
  { req, res, context }: LogsRequest,
  { mediaType, store, selection, recheck, ended }: Following,
): Promise<void> {
  const sse = mediaType === eventStream;
  const refused = new AbortController();
  const signal = AbortSignal.any([context.signal, ended, refused.signal]);
  res.statusCode = 200;
  res.setHeader('Content-Type', mediaType);
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  context.onRecheck(recheck, (error) => refused.abort(error));
  res.flushHeaders();
  const body = new StreamedBody(res);
  const send = (piece: Buffer): void => body.write(framed(body.framing, [piece]));
  const keepAlive = setInterval(() => {
    if (!body.isFull) send(sse ? keepAliveFrame() : empty);
  }, keepAliveInterval);
  const follow = newRecords(store, selection, signal);
  try {
    let next = await follow.next();
    while (next.done !== true && !res.closed) {
      send(Buffer.concat(next.value.map((record) => frame(sse, record))));
      keepAlive.refresh();
      if (body.isFull) await untilAborted(body.drained(), signal);
      next = await follow.next();
    }
    if (next.done === true && next.value.partial !== undefined)
      send(frame(sse, { partial: next.value.partial }, 'partial'));
    body.end();
  } catch (error) {
    const reason: unknown = ended.aborted ? ended.reason : refused.signal.aborted ? refused.signal.reason : error;
    if (!context.signal.aborted) {
      const status = statusOf(reason, context);
      if (status.code === 500) context.log.error('log stream failed', { error });
      send(frame(sse, status.toStatus(), 'error'));
    }
    body.end();
  } finally {
    clearInterval(keepAlive);
    await follow.return({});
  }
}
