import type { Auditor } from '../../audit/auditor.ts';
import { Body } from '../../audit/bodies.ts';
import type { BodyHeaders } from '../../audit/record.ts';
import type { Exchange, Filter } from '../exchange.ts';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/**
 * What is refused before anybody knows whose it is, is written down too. Of what is sent no more arrives, before somebody reads it, than
 * a stream holds.
 */
export const auditEnd =
  (auditor: Auditor): Filter =>
  (exchange) => {
    if (auditor.mayShowBodies()) exchange.sent = tapRequest(exchange);
    exchange.onEnd(() => {
      const { res } = exchange;
      const record = exchange.audit ?? begin(auditor, exchange);
      record.complete(Date.now(), res.statusCode, { failure: exchange.failure, isWhole: res.writableFinished });
    });
  };

/** Comes when it is known who asks. */
export const audit =
  (auditor: Auditor): Filter =>
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
function tapRequest({ req }: Exchange): Body {
  const body = new Body();
  const push = req.push.bind(req);
  req.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array) body.add(chunk);
    return push(chunk, encoding);
  };
  return body;
}

function tapResponse({ res }: Exchange, body: Body): void {
  const see = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) body.add(Buffer.from(chunk));
  };
  const write = res.write.bind(res) as (...all: unknown[]) => boolean;
  const end = res.end.bind(res) as (...all: unknown[]) => typeof res;
  res.write = (...all: unknown[]) => {
    see(all[0]);
    return write(...all);
  };
  res.end = (...all: unknown[]) => {
    see(all[0]);
    return end(...all);
  };
}

/** When the headers go out; the gateway hands them all over in a list. */
function onHead(res: Exchange['res'], then: (headers: BodyHeaders) => void): void {
  const writeHead = res.writeHead.bind(res) as (...all: unknown[]) => typeof res;
  res.writeHead = (...all: unknown[]) => {
    const result = writeHead(...all);
    const list = all.find((one) => Array.isArray(one)) as readonly string[] | undefined;
    const valueOf = (name: string): string =>
      text(list === undefined ? res.getHeader(name) : list[list.findIndex((one) => one.toLowerCase() === name) + 1]);
    then({ type: valueOf('content-type'), encoding: valueOf('content-encoding') });
    return result;
  };
}
