/** A live tail: a line of JSON, or a server-sent event, a record. */
import type { Request, Response } from 'express';
import { once } from 'node:events';
import { internalError, StatusError } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { framed, StreamedBody } from '../http/response/streamed-body.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import { followByAsking } from './stores/polling.ts';
import type { Cut, LogRecord, LogStore, Selection } from './stores/log-store.ts';
import { eventStream } from '../apimachinery/watch/response.ts';
import { keepAliveFrame, keepAliveInterval } from '../apimachinery/watch/frames.ts';

export interface Following {
  /** One of `followTypes`. */
  readonly mediaType: string;
  readonly store: Pick<LogStore, 'query' | 'follow'>;
  readonly selection: Selection;
  /** Throws what ends it when the caller's rights are others. */
  readonly recheck: () => Promise<void>;
  /** Aborted, with the reason, when the store is no longer the one to ask, or nobody listens any longer. */
  readonly ended: AbortSignal;
}

/** In which a tail can be had. */
export const followTypes = ['application/json', 'application/x-ndjson', 'application/jsonl', eventStream];

const empty = Buffer.from('\n');

/** What is told beside records has its name as an event; its client does not take it for one. */
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
  if (selection.namespaces?.size === 0) return silence(signal);
  return store.follow === undefined ? followByAsking(store, selection, signal) : store.follow(selection, signal);
}

/** Of who may see nothing: a tail that ended at once would only be asked for again, and again. */
// oxlint-disable-next-line require-yield -- there is nothing to tell
async function* silence(signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

export async function followLogs(
  req: Request,
  res: Response,
  context: RequestContext,
  { mediaType, store, selection, recheck, ended }: Following,
): Promise<void> {
  const sse = mediaType === eventStream;
  const refused = new AbortController();
  const signal = AbortSignal.any([context.signal, ended, refused.signal]);
  res.statusCode = 200;
  res.setHeader('Content-Type', mediaType);
  res.setHeader('Cache-Control', 'no-cache, private');
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  context.onRecheck(recheck, (error) => refused.abort(error));
  res.flushHeaders();
  const body = new StreamedBody(res);
  const tell = (piece: Buffer): void => body.write(framed(body.framing, [piece]));
  const quiet = setInterval(() => {
    if (!body.isFull) tell(sse ? keepAliveFrame() : empty);
  }, keepAliveInterval);
  const follow = newRecords(store, selection, signal);
  try {
    let next = await follow.next();
    while (next.done !== true && !res.closed) {
      tell(Buffer.concat(next.value.map((record) => frame(sse, record))));
      quiet.refresh();
      if (body.isFull) await body.drained();
      next = await follow.next();
    }
    if (next.done === true && next.value.partial !== undefined)
      tell(frame(sse, { partial: next.value.partial }, 'partial'));
    body.end();
  } catch (error) {
    const why: unknown = ended.aborted ? ended.reason : refused.signal.aborted ? refused.signal.reason : error;
    if (!context.signal.aborted) {
      const status = statusOf(why, context);
      if (status.code === 500) context.log.error('a follow of logs broke off', { error });
      tell(frame(sse, status.toStatus(), 'error'));
    }
    body.end();
  } finally {
    clearInterval(quiet);
    await follow.return({});
  }
}
