import type { ServerHttp2Stream } from 'node:http2';
import { http2StreamOf } from '../response/cut-off.ts';
import type { Writable } from 'node:stream';
import type { Auditor } from '../../audit/auditor.ts';
import type { AuditBody, BodyHeaders } from '../../audit/bodies.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { randomUUID } from 'node:crypto';

/** Takes a well-formed Audit-Id from the request, or creates an Audit-Id. Every response and log line carries it. */
export const auditID: RequestFilter = (exchange) => {
  const given = exchange.req.headers['audit-id'];
  exchange.auditID = typeof given === 'string' && /^[A-Za-z0-9-]{8,64}$/.test(given) ? given : randomUUID();
  exchange.res.setHeader('Audit-Id', exchange.auditID);
};

/** Returns the first value of a header. */
function text(value: unknown): string {
  const [first] = [value].flat();
  return typeof first === 'string' ? first : '';
}

/**
 * Completes the audit event when the request ends, even if a filter refused the request before authentication. Collects
 * the request body. Until the body is read, the client can send only as many bytes as the stream buffers.
 */
export const auditEnd =
  (auditor: Auditor): RequestFilter =>
  (exchange) => {
    exchange.requestBody = auditor.body();
    if (exchange.requestBody !== undefined) tapRequest(exchange, exchange.requestBody);
    const leave = auditor.enter();
    exchange.onCompleted((completion) => (exchange.audit ?? begin(auditor, exchange)).complete(completion));
    exchange.onCompleted(() => exchange.requestBody?.discard());
    exchange.onResponseWritten(() => {
      if (exchange.audit === undefined) exchange.requestBody?.discard();
    });
    exchange.onCompleted(leave);
  };

/** Starts the audit record. Runs after authentication. */
export const audit =
  (auditor: Auditor): RequestFilter =>
  (exchange) => {
    const { req, res, info } = exchange;
    const record = begin(auditor, exchange);
    exchange.audit = record;
    record.received(Date.now());
    if (exchange.requestBody !== undefined) {
      record.showRequest(exchange.requestBody);
      record.describeRequest({
        type: text(req.headers['content-type']),
        encoding: text(req.headers['content-encoding']),
      });
    }
    if (record.responseBody !== undefined) tapResponse(exchange, record.responseBody);
    if (info.isLongRunning || record.responseBody !== undefined)
      onHead(res, (headers) => {
        record.describeResponse(headers);
        if (info.isLongRunning) record.started(Date.now(), res.statusCode);
      });
  };

const begin = (auditor: Auditor, exchange: Exchange): ReturnType<Auditor['begin']> =>
  auditor.begin(exchange, Date.now() - (performance.now() - exchange.started));

/** Copies the request body as it arrives, independently of its reader. */
function tapRequest({ req }: Exchange, body: AuditBody): void {
  const push = req.push.bind(req);
  req.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array) body.add(chunk);
    return push(chunk, encoding);
  };
}

/** Returns the stream for HTTP/2, because Http2ServerResponse does not write everything through its own methods. */
const wireOf = (res: Exchange['res']): Exchange['res'] | ServerHttp2Stream => http2StreamOf(res) ?? res;

function tapResponse({ res }: Exchange, body: AuditBody): void {
  const collect = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) body.add(Buffer.from(chunk));
  };
  const wire = wireOf(res) as Writable;
  const write = wire.write.bind(wire) as (...all: unknown[]) => boolean;
  const end = wire.end.bind(wire) as (...all: unknown[]) => typeof wire;
  wire.write = (...all: unknown[]) => {
    collect(all[0]);
    return write(...all);
  };
  wire.end = (...all: unknown[]) => {
    collect(all[0]);
    return end(...all);
  };
}

/** Calls `listener` when the headers are sent. */
function onHead(res: Exchange['res'], listener: (headers: BodyHeaders) => void): void {
  const wire = wireOf(res);
  if ('respond' in wire) {
    const respond = wire.respond.bind(wire);
    wire.respond = (headers, options) => {
      respond(headers, options);
      listener(headersOf(new Map(Object.entries((headers ?? {}) as Readonly<Record<string, unknown>>))));
    };
    return;
  }
  const writeHead = res.writeHead.bind(res) as (...all: unknown[]) => typeof res;
  res.writeHead = (...all: unknown[]) => {
    const result = writeHead(...all);
    // The gateway passes all headers as a flat list of names and values.
    const list = all.find((one) => Array.isArray(one)) as readonly string[] | undefined;
    listener(headersOf(list === undefined ? { get: (name) => res.getHeader(name) } : pairs(list)));
    return result;
  };
}

const headersOf = (headers: { get(name: string): unknown }): BodyHeaders => ({
  type: text(headers.get('content-type')),
  encoding: text(headers.get('content-encoding')),
});

function pairs(list: readonly string[]): Map<string, string> {
  const all = new Map<string, string>();
  for (let at = 0; at < list.length; at += 2) all.set((list[at] ?? '').toLowerCase(), list[at + 1] ?? '');
  return all;
}
