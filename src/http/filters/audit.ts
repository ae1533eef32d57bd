import type { ServerHttp2Stream } from 'node:http2';
import { http2StreamOf } from '../response/cut-off.ts';
import type { Writable } from 'node:stream';
import type { Auditor } from '../../audit/auditor.ts';
import type { AuditBody, BodyHeaders } from '../../audit/bodies.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { randomUUID } from 'node:crypto';

/** The request's own Audit-Id when it is a plausible one, else a new one; every answer and log line carries it. */
export const auditID: RequestFilter = (exchange) => {
  const given = exchange.req.headers['audit-id'];
  exchange.auditID = typeof given === 'string' && /^[A-Za-z0-9-]{8,64}$/.test(given) ? given : randomUUID();
  exchange.res.setHeader('Audit-Id', exchange.auditID);
};

/** The first value of a header. */
function text(value: unknown): string {
  const [first] = [value].flat();
  return typeof first === 'string' ? first : '';
}

/**
 * What is refused before anybody knows whose it is, is written down too. Of what is sent no more arrives, before somebody reads it, than
 * a stream holds.
 */
export const auditEnd =
  (auditor: Auditor): RequestFilter =>
  (exchange) => {
    exchange.sent = auditor.body();
    if (exchange.sent !== undefined) tapRequest(exchange, exchange.sent);
    const leave = auditor.enter();
    exchange.onEnd(() => {
      const { res } = exchange;
      const record = exchange.audit ?? begin(auditor, exchange);
      record.complete(Date.now(), exchange.status, { failure: exchange.failure, isWhole: res.writableFinished });
    });
    exchange.onEnd(() => exchange.sent?.giveUp());
    exchange.onAnswered(() => {
      if (exchange.audit === undefined) exchange.sent?.giveUp();
    });
    exchange.onEnd(leave);
  };

/** Comes when it is known who asks. */
export const audit =
  (auditor: Auditor): RequestFilter =>
  (exchange) => {
    const { req, res, info } = exchange;
    const record = begin(auditor, exchange);
    exchange.audit = record;
    record.received(Date.now());
    if (exchange.sent !== undefined) {
      record.showRequest(exchange.sent);
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

/** Whoever reads it, and at whatever pace: it is seen as it arrives. */
function tapRequest({ req }: Exchange, body: AuditBody): void {
  const push = req.push.bind(req);
  req.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array) body.add(chunk);
    return push(chunk, encoding);
  };
}

/** Returns the stream over HTTP/2: Http2ServerResponse does not write everything by its own methods. */
const wireOf = (res: Exchange['res']): Exchange['res'] | ServerHttp2Stream => http2StreamOf(res) ?? res;

function tapResponse({ res }: Exchange, body: AuditBody): void {
  const see = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) body.add(Buffer.from(chunk));
  };
  const wire = wireOf(res) as Writable;
  const write = wire.write.bind(wire) as (...all: unknown[]) => boolean;
  const end = wire.end.bind(wire) as (...all: unknown[]) => typeof wire;
  wire.write = (...all: unknown[]) => {
    see(all[0]);
    return write(...all);
  };
  wire.end = (...all: unknown[]) => {
    see(all[0]);
    return end(...all);
  };
}

/** When the headers go out. */
function onHead(res: Exchange['res'], then: (headers: BodyHeaders) => void): void {
  const wire = wireOf(res);
  if ('respond' in wire) {
    const respond = wire.respond.bind(wire);
    wire.respond = (headers, options) => {
      respond(headers, options);
      then(headersOf(new Map(Object.entries((headers ?? {}) as Readonly<Record<string, unknown>>))));
    };
    return;
  }
  const writeHead = res.writeHead.bind(res) as (...all: unknown[]) => typeof res;
  res.writeHead = (...all: unknown[]) => {
    const result = writeHead(...all);
    // The gateway hands them all over in a list.
    const list = all.find((one) => Array.isArray(one)) as readonly string[] | undefined;
    then(headersOf(list === undefined ? { get: (name) => res.getHeader(name) } : pairs(list)));
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
