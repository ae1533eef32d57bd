import { isChange, shortRequestTimeout } from '../../cluster/client/upstream.ts';
import { timeout } from '../../runtime/errors.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { requestTimeout } from '../request/request-timeout.ts';

const maxDuration = 60_000;
/**
 * Maximum milliseconds of a proxied request. kube-apiserver applies 60 s and `?timeout=` itself, and the connection to
 * kube-apiserver has a timeout. Their errors, which say more, arrive first unless the body is sent slowly.
 */
const maxProxiedDuration = shortRequestTimeout + 5_000;

/**
 * Ends requests after 60 s, or after a shorter `?timeout=32s` (sent by kubectl). This filter sets no deadline for
 * watches and streams. The error response is written by `writeError`, not by the handler.
 */
export const deadline =
  (writeError: (exchange: Exchange, error: Error) => void): RequestFilter =>
  (exchange) => {
    const { info, isProxied } = exchange;
    if (info.isLongRunning) return;
    const requested = isProxied || info.prefix === 'oauth' ? 0 : requestTimeout(exchange.query);
    const limit = requested > 0 ? Math.min(requested, maxDuration) : isProxied ? maxProxiedDuration : maxDuration;
    const expire = (): void => {
      const { res } = exchange;
      const isWritten = res.writableEnded;
      // A pipelined response waits for the previous response, so its client has not had time to read it.
      if (isWritten && res.socket === null) return void res.once('socket', () => timer.refresh());
      const exceeded = 'the request exceeded its deadline';
      const error = timeout(isChange(exchange.req) ? `${exceeded}; the outcome of the change is unknown` : exceeded);
      exchange.abort(error);
      // A client that does not read its response must not occupy the memory of the response.
      if (isWritten) exchange.cut();
      else writeError(exchange, error);
    };
    const timer = setTimeout(expire, limit);
    exchange.onEnd(() => clearTimeout(timer));
  };
