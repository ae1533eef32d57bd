/** Exports logs with the text of one record per line. If records are missing, the last line contains the reason. */
import { BodyWriter } from '../http/response/body-writer.ts';
import { cutIfUnread } from '../http/response/cut-off.ts';
import { untilAborted } from '../runtime/promises.ts';
import type { LogsRequest } from './handler.ts';
import type { LogQuery } from './query/query.ts';
import type { LogRecord, LogStore, Selection } from './stores/log-store.ts';

export interface Exporting {
  readonly store: Pick<LogStore, 'export'>;
  readonly selection: Selection;
  /** Authorizes the caller again. Throws the error that ends the export if the caller's rights have changed. */
  readonly recheck: () => Promise<void>;
  /** Signal that is aborted with the reason when the timeout expires. */
  readonly ended: AbortSignal;
}

export const exportType = 'text/plain';

/** Maximum bytes per write. While a slow client reads, these bytes stay in memory in addition to the records. */
const maxWrite = 256 * 1024;

function* linesOf(records: readonly LogRecord[]): Generator<Buffer> {
  let lines: string[] = [];
  let length = 0;
  for (const { log } of records) {
    lines.push(log, '\n');
    length += log.length + 1;
    if (length < maxWrite) continue;
    yield Buffer.from(lines.join(''));
    lines = [];
    length = 0;
  }
  if (length > 0) yield Buffer.from(lines.join(''));
}

const lastLine = (reason: string): Buffer => Buffer.from(`# partial: ${reason}\n`);

export async function exportLogs(
  { req, res, context }: LogsRequest,
  { sort, start_time: start, end_time: end }: LogQuery,
  { store, selection, recheck, ended: limit }: Exporting,
): Promise<void> {
  const refused = new AbortController();
  context.onRecheck(recheck, (error) => refused.abort(error));
  const ended = AbortSignal.any([limit, refused.signal]);
  const signal = AbortSignal.any([context.signal, ended]);
  const pieces = store.export(selection, sort, signal);
  let body: BodyWriter | undefined;
  try {
    // The status is sent once the first piece is available. Until then, a failure of the store still results in an
    // error response.
    let next = await pieces.next();
    res.statusCode = 200;
    res.setHeader('Content-Type', `${exportType}; charset=utf-8`);
    res.setHeader('Content-Disposition', `attachment; filename="logs-${start ?? 'all'}-${end}.txt"`);
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    body = new BodyWriter(res);
    while (next.done !== true && !body.closed) {
      for (const lines of linesOf(next.value)) await untilAborted(body.write(lines), signal);
      if (!body.closed) next = await pieces.next();
    }
    const reason = next.done === true ? next.value.partial?.reason : undefined;
    body.end(...(reason === undefined ? [] : [lastLine(reason)]));
  } catch (error) {
    if (body === undefined || context.signal.aborted || !ended.aborted) throw error;
    body.end(lastLine((ended.reason as Error).message));
    cutIfUnread(res);
  } finally {
    await pieces.return({});
  }
}
