import { timeout } from '../../runtime/errors.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { requestTimeout } from '../request/request-timeout.ts';

const longest = 60_000;
/** kube-apiserver has the same limit, and `?timeout=` is for it to understand: its own words come first. */
const longestProxied = 65_000;

/**
 * Ends requests after 60 s, or after `?timeout=32s` (kubectl sends it) if that is less; watches and streams are not ended here.
 * `late` answers in the handler's place.
 */
export const deadline =
  (late: (exchange: Exchange, error: Error) => void): RequestFilter =>
  (exchange) => {
    const { info, isProxied } = exchange;
    if (info.isLongRunning) return;
    const asked = isProxied || info.prefix === 'oauth' ? 0 : requestTimeout(exchange.query);
    const limit = asked > 0 ? Math.min(asked, longest) : isProxied ? longestProxied : longest;
    const expire = (): void => {
      const { res } = exchange;
      const isAnswered = res.writableEnded;
      // A pipelined response waits for the one before it: its reader is not late.
      if (isAnswered && res.socket === null) return void res.once('socket', () => timer.refresh());
      const error = timeout('the request did not end within its deadline');
      exchange.abort(error);
      // A client that does not read its response must not keep what it holds.
      if (isAnswered) exchange.cut();
      else late(exchange, error);
    };
    const timer = setTimeout(expire, limit);
    exchange.onEnd(() => clearTimeout(timer));
  };
