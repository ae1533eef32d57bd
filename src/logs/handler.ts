/** `GET …/logs`: what is asked is judged, cut to what the caller may see, and answered by the store of the configuration. */
import type { Request, Response } from 'express';
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { holderOf } from '../auth/user.ts';
import { BodyWriter } from '../http/response/body-writer.ts';
import { Places } from '../http/filters/in-flight.ts';
import { negotiate } from '../http/request/negotiate.ts';
import type { Handler, RequestContext } from '../http/route.ts';
import type { TypeOf } from '../http/schema.ts';
import { write } from '../http/response/write.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import {
  demandCapable,
  type Found,
  type Histogram,
  type LogRecord,
  type LogStore,
  type Selection,
  type Statistics,
} from './stores/log-store.ts';
import type { Logs, StoreUse } from './open-store.ts';
import { parseQuestion, type LogQuery } from './query/query.ts';
import { Slots } from '../runtime/slots.ts';
import { asCaller, demandServed } from '../apimachinery/reading.ts';
import { followLogs, followTypes } from './follow.ts';
import type { logsSchema } from './query/schemas.ts';
import { demandNoList, streamLimit } from './query/limits.ts';
import { demandSame, demandStill, visibleLogs, type LogAccess, type VisibleLogs } from './query/visible.ts';
import { workloadPods } from './query/workload-pods.ts';

export interface LogsParts extends LogAccess {
  readonly logs: Pick<Logs, 'use'>;
  readonly bounds: LogsBounds;
  readonly client: Pick<KubeClient, 'stream'>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

const mebi = 1024 * 1024;
/** Bytes of a response that is not counted: requests.maxInFlight limits those. */
const smallAnswer = 256 * 1024;

/** What callers may hold, wherever they ask. */
export class LogsBounds {
  /** In bytes: readers that are slow, or never read, must not hold all memory. */
  readonly answers = new Slots({
    what: 'bytes of log responses that are not read yet',
    total: 128 * mebi,
    perUser: 64 * mebi,
  });
  /** Of each user. */
  readonly streams = new Places('exports and tails of logs');
}

/** One user does not take all that there are (with-limit.ts). */
const mostStreamsPerUser = 16;

/** What stands before the answer: kind and apiVersion, where it is an object of Kubernetes. */
export type ResponseHead = Readonly<Record<string, string>>;

type Answer = { query: Found } | { statistics: Statistics } | { histogram: Histogram };

const json = 'application/json';
const text = 'text/plain';

/** Whom a selection leaves nothing is answered without the store. */
const isNothing = (visible: VisibleLogs): boolean => visible?.size === 0;

const nothing: Pick<LogStore, 'query' | 'statistics' | 'histogram' | 'export'> = {
  query: async () => ({ total: 0, records: [] }),
  statistics: async () => ({ containers: 0, logs: 0 }),
  histogram: async () => ({ total: 0, histograms: [] }),
  // oxlint-disable-next-line require-yield -- there is nothing to tell
  async *export() {
    return {};
  },
};

async function answerOf(
  store: typeof nothing,
  { operation, page, interval }: LogQuery,
  selection: Selection,
  signal: AbortSignal,
): Promise<Answer> {
  if (operation === 'statistics') return { statistics: await store.statistics(selection, signal) };
  if (operation === 'histogram') return { histogram: await store.histogram(selection, interval, signal) };
  return { query: await store.query(selection, page, signal) };
}

const lastLine = (reason: string): Buffer => Buffer.from(`# partial: ${reason}\n`);

/** Bytes that are handed on at once: slow readers hold them beside the records. */
const mostLines = 256 * 1024;

function* linesOf(records: readonly LogRecord[]): Generator<Buffer> {
  let lines: string[] = [];
  let length = 0;
  for (const { log } of records) {
    lines.push(log, '\n');
    length += log.length + 1;
    if (length < mostLines) continue;
    yield Buffer.from(lines.join(''));
    lines = [];
    length = 0;
  }
  if (length > 0) yield Buffer.from(lines.join(''));
}

/** Each text on a line, as it was written. What cut it short is the last line. */
async function exportLogs(
  req: Request,
  res: Response,
  { export: exported }: Pick<typeof nothing, 'export'>,
  { page: { order }, start, end }: LogQuery,
  selection: Selection,
  signal: AbortSignal,
  ended: AbortSignal,
): Promise<void> {
  const pieces = exported(selection, order, AbortSignal.any([signal, ended]));
  let body: BodyWriter | undefined;
  try {
    // What cannot be had at all is told as an error.
    let next = await pieces.next();
    res.statusCode = 200;
    res.setHeader('Content-Type', `${text}; charset=utf-8`);
    res.setHeader('Cache-Control', 'no-cache, private');
    res.setHeader('Content-Disposition', `attachment; filename="logs-${start ?? 'all'}-${end}.txt"`);
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    body = new BodyWriter(res);
    while (next.done !== true && !body.closed) {
      for (const lines of linesOf(next.value)) {
        await body.write(lines);
        ended.throwIfAborted();
      }
      if (!body.closed) next = await pieces.next();
    }
    const reason = next.done === true ? next.value.partial?.reason : undefined;
    body.end(...(reason === undefined ? [] : [lastLine(reason)]));
  } catch (error) {
    if (body === undefined || signal.aborted || !ended.aborted) throw error;
    body.end(lastLine((ended.reason as Error).message));
  } finally {
    await pieces.return({});
  }
}

async function selectionOf(
  catalogue: LogsParts['catalogue'],
  query: LogQuery,
  context: RequestContext,
  visible: VisibleLogs,
): Promise<Selection> {
  const { named, searched } = await workloadPods(catalogue, context, query, visible);
  const { start, end, pods, containers, keywords } = query;
  // Among the names that may be seen they were looked for already, unless these were given.
  return {
    start,
    end,
    namespaces: visible,
    workloads: named,
    pods,
    containers,
    keywords: { ...keywords, workload: searched },
  };
}

export function logsHandler(
  { logs, client, bounds, now = Date.now, ...access }: LogsParts,
  head: ResponseHead,
): Handler {
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };

  /** Throws 403 for a path of the aggregated face that the caller is no longer allowed to get. */
  async function demandPath(context: RequestContext): Promise<void> {
    if (context.info.prefix === 'apis') await demandServed(recheckAccess.authorizer, context);
  }

  async function answer(
    use: StoreUse,
    question: LogQuery,
    mediaType: string,
    ...[req, res, context]: Parameters<Handler>
  ): Promise<void> {
    const { user, signal } = context;
    const store = use.storeFor(asCaller(client, user), holderOf(user));
    demandCapable(store, question);
    if (question.follow || question.operation === 'export')
      context.onEnd(bounds.streams.take(holderOf(user), mostStreamsPerUser));
    const limit = streamLimit(context);
    const visible = await visibleLogs(access, context, question);
    if (question.follow) {
      const selection = await selectionOf(access.catalogue, question, context, visible);
      const ended = AbortSignal.any([use.replaced, limit]);
      const recheck = async (): Promise<void> => {
        await demandPath(context);
        await demandSame(recheckAccess, context, question, visible);
      };
      await followLogs(req, res, context, { mediaType, store, selection, recheck, ended });
      return;
    }
    const able = isNothing(visible) ? nothing : store;
    const selection = await selectionOf(access.catalogue, question, context, visible);
    if (question.operation === 'export') {
      const refused = new AbortController();
      const recheck = async (): Promise<void> => {
        await demandPath(context);
        await demandStill(recheckAccess, context, question, visible);
      };
      context.onRecheck(recheck, (error) => refused.abort(error));
      const ended = AbortSignal.any([limit, refused.signal]);
      return exportLogs(req, res, able, question, selection, signal, ended);
    }
    const found = await answerOf(able, question, selection, signal);
    const value: TypeOf<typeof logsSchema> = { ...head, ...found };
    const body = Buffer.from(`${JSON.stringify(value, undefined, question.pretty ? 2 : undefined)}\n`);
    if (body.length > smallAnswer) context.onEnd(bounds.answers.take(holderOf(user), body.length));
    await write(req, res, { contentType: json, body: [body] });
  }

  return async (req, res, context) => {
    demandNoList(req, context);
    const question = parseQuestion(context.query, now());
    const offered = question.follow ? followTypes : question.operation === 'export' ? [text] : [json];
    const mediaType = negotiate(req.headers.accept, offered, (type) => type);
    const use = logs.use();
    try {
      await answer(use, question, mediaType, req, res, context);
    } finally {
      use.release();
    }
  };
}
