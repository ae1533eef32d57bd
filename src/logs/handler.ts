/**
 * Serves log queries. Restricts each query to the logs that the caller is allowed to see, and reads these logs from the
 * configured store.
 */
import type { Request, Response } from 'express';
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { holderOf, type UserInfo } from '../auth/user.ts';
import { asCaller, assertStillAllowed } from '../apimachinery/reading.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { negotiate } from '../http/request/negotiate.ts';
import { write } from '../http/response/write.ts';
import type { RequestContext } from '../http/route.ts';
import type { TypeOf } from '../http/schema.ts';
import { exportLogs, exportType } from './export.ts';
import { followLogs, followTypes } from './follow.ts';
import { smallResponse, type LogsBounds } from './limits.ts';
import type { ConfiguredLogStore, StoreUse } from './open-store.ts';
import { streamTimeout } from './query/stream-timeout.ts';
import type { LogParameters } from './query/parameters.ts';
import { completeQuery, type LogQuery } from './query/query.ts';
import type { logsSchema } from './query/schemas.ts';
import {
  assertSameVisible,
  assertStillVisible,
  visibleLogs,
  type LogAccess,
  type VisibleLogs,
} from './query/visible.ts';
import { workloadPods } from './query/workload-pods.ts';
import { type Found, type Histogram, type LogStore, type Selection, type Statistics } from './stores/log-store.ts';

export interface LogsParts extends LogAccess {
  readonly logs: Pick<ConfiguredLogStore, 'use'>;
  readonly bounds: LogsBounds;
  readonly client: Pick<KubeClient, 'stream'>;
  /** Returns the time in milliseconds since the epoch. */
  readonly now?: () => number;
}

export interface LogsRequest {
  readonly req: Request;
  readonly res: Response;
  readonly context: RequestContext & { readonly user: UserInfo };
  readonly query: LogParameters;
}

/** First properties of a response. A response that is a Kubernetes object starts with `kind` and `apiVersion`. */
export type ResponseHead = Readonly<Record<string, string>>;

type Result = { query: Found } | { statistics: Statistics } | { histogram: Histogram };
type Readable = Pick<LogStore, 'query' | 'statistics' | 'histogram' | 'export'>;

/** Replaces the store for callers who are not allowed to see anything. */
const emptyStore: Readable = {
  query: async () => ({ total: 0, records: [] }),
  statistics: async () => ({ containers: 0, logs: 0 }),
  histogram: async () => ({ total: 0, histograms: [] }),
  // oxlint-disable-next-line require-yield -- there are no records
  async *export() {
    return {};
  },
};

async function resultOf(
  store: Readable,
  { operation, sort: order, from, size, interval }: LogQuery,
  selection: Selection,
  signal: AbortSignal,
): Promise<Result> {
  if (operation === 'statistics') return { statistics: await store.statistics(selection, signal) };
  if (operation === 'histogram') return { histogram: await store.histogram(selection, interval, signal) };
  return { query: await store.query(selection, { order, from, size }, signal) };
}

async function selectionOf(
  catalogue: LogsParts['catalogue'],
  query: LogQuery,
  context: RequestContext,
  visible: VisibleLogs,
): Promise<Selection> {
  const { named, searched } = await workloadPods(catalogue, context, query, visible);
  return {
    start: query.start_time,
    end: query.end_time,
    namespaces: visible,
    workloads: named,
    pods: query.pods,
    containers: query.containers,
    keywords: {
      namespace: query.namespace_query,
      workload: searched,
      pod: query.pod_query,
      container: query.container_query,
      log: query.log_query,
    },
  };
}

const mediaTypesOf = ({ follow, operation }: LogQuery): readonly string[] =>
  follow ? followTypes : [operation === 'export' ? exportType : 'application/json'];

export function logsHandler(
  { logs, client, bounds, now = Date.now, ...access }: LogsParts,
  head: ResponseHead,
): (request: LogsRequest) => Promise<void> {
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };

  async function serve(request: LogsRequest, query: LogQuery, mediaType: string, use: StoreUse): Promise<void> {
    const { req, res, context } = request;
    const { user, signal } = context;
    const holder = holderOf(user);
    const store = use.storeFor(asCaller(client, user), holder);
    const isStream = query.follow || query.operation === 'export';
    if (isStream) context.onEnd(bounds.takeStream(holder));
    const timeout = streamTimeout(context);
    const visible = await visibleLogs(access, context, query);
    const selection = await selectionOf(access.catalogue, query, context, visible);
    const recheck = async (): Promise<void> => {
      if (context.info.prefix === 'apis') await assertStillAllowed(recheckAccess.authorizer, context);
      await (query.follow ? assertSameVisible : assertStillVisible)(recheckAccess, context, query, visible);
    };
    if (query.follow) {
      const ended = AbortSignal.any([use.replaced, timeout]);
      return followLogs(request, { mediaType, store, selection, recheck, ended });
    }
    const readable = visible?.size === 0 ? emptyStore : store;
    if (isStream) return exportLogs(request, query, { store: readable, selection, recheck, ended: timeout });
    const value: TypeOf<typeof logsSchema> = { ...head, ...(await resultOf(readable, query, selection, signal)) };
    const body = Buffer.from(`${JSON.stringify(value, undefined, query.pretty ? 2 : undefined)}\n`);
    if (body.length > smallResponse) context.onEnd(bounds.responses.take(holder, body.length));
    await write(req, res, { contentType: mediaType, body: [body] });
  }

  return async (request) => {
    const query = completeQuery(request.query, now());
    const mediaType = negotiate(request.req.headers.accept, mediaTypesOf(query), (type) => type);
    const use = logs.use();
    try {
      await serve(request, query, mediaType, use);
    } finally {
      use.release();
    }
  };
}
