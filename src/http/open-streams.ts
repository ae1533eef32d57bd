import type { Authenticator } from '../auth/authenticators/index.ts';
import { serviceUnavailable, StatusError } from '../runtime/errors.ts';
import { Slice } from '../runtime/slice.ts';
import type { Exchange, RequestFilter } from './exchange.ts';
import { podStreams } from './filters/request-info.ts';
import { Wheel } from '../runtime/wheel.ts';

/** Milliseconds between two checks of the rights of an open stream. */
const recheckInterval = 10_000;

interface OpenStream {
  readonly authenticate: Authenticator;
  /** Position of the next check on the timer wheel. */
  at: number;
}

/**
 * The open watches and streams. A stream ends when the identity that opened it is revoked or loses its rights. When the
 * server drains, all streams end except streams to and from pods, which end with their connection.
 */
export class OpenStreams {
  readonly #open = new Map<Exchange, OpenStream>();
  readonly #wheel = new Wheel<Exchange>((exchange) => this.#recheck(exchange));
  readonly #bySession = new Map<string, Set<Exchange>>();
  #hasEnded = false;

  /**
   * Returns the filter that registers open streams. The filter runs after `authenticate` has authenticated the request.
   */
  filter(authenticate: Authenticator): RequestFilter {
    return (exchange) => {
      if (!exchange.info.isLongRunning) return;
      // A client can send one more request on an open connection after the listeners have closed.
      if (this.#hasEnded) throw serviceUnavailable('the server is shutting down');
      // A credential belongs to the same session for its whole lifetime.
      const sid = exchange.user?.sessionID;
      const open = { authenticate, at: this.#wheel.put(exchange, nextRecheck(exchange)) };
      this.#open.set(exchange, open);
      if (sid !== undefined) this.#add(sid, exchange);
      exchange.onEnd(() => {
        this.#wheel.remove(exchange, open.at);
        this.#open.delete(exchange);
        if (sid !== undefined) this.#remove(sid, exchange);
      });
    };
  }

  get size(): number {
    return this.#open.size;
  }

  /** Ends the streams of a revoked session. */
  endSession(sid: string): void {
    for (const exchange of this.#bySession.get(sid) ?? []) exchange.abort();
  }

  /**
   * Authenticates all streams again after users or clients changed. A stream ends if its credential is no longer valid.
   * If the groups of a user changed, the rights of the user's streams are reviewed at once. A stream continues if the
   * server cannot authenticate it at the moment.
   */
  async recheck(): Promise<void> {
    const slice = new Slice();
    for (const [exchange, { authenticate }] of this.#open) {
      if (slice.isOver) await slice.next();
      void reauthenticate(exchange, authenticate);
    }
  }

  /**
   * Accepts no further streams, and ends the open streams. The ends are spread evenly over `spread` milliseconds, so
   * that clients do not reconnect at the same time. Streams to and from pods, such as exec, continue until their
   * connection is closed: clients cannot resume them at another replica.
   */
  endAll(spread: number): void {
    this.#hasEnded = true;
    const all = [...this.#open.keys()].filter(({ info }) => !podStreams.has(info.subresource));
    for (const [index, exchange] of all.entries())
      setTimeout(() => exchange.abort(), (index * spread) / Math.max(1, all.length)).unref();
  }

  #recheck(exchange: Exchange): void {
    const open = this.#open.get(exchange);
    if (open === undefined) return;
    // No event reports a deleted ServiceAccount, a deleted pod or an expired token, so the credential is authenticated
    // again.
    if (exchange.user?.via === 'token-review') void reauthenticate(exchange, open.authenticate);
    exchange.recheck();
    open.at = this.#wheel.put(exchange, nextRecheck(exchange));
  }

  #add(sid: string, exchange: Exchange): void {
    const streams = this.#bySession.get(sid);
    if (streams === undefined) this.#bySession.set(sid, new Set([exchange]));
    else streams.add(exchange);
  }

  #remove(sid: string, exchange: Exchange): void {
    const streams = this.#bySession.get(sid);
    streams?.delete(exchange);
    if (streams?.size === 0) this.#bySession.delete(sid);
  }
}

async function reauthenticate(exchange: Exchange, authenticate: Authenticator): Promise<void> {
  try {
    const user = await authenticate(exchange.req, { streamsOf: exchange.user?.username ?? '' });
    if (user === undefined) exchange.abort();
    else exchange.setUser(user);
  } catch (error) {
    if (error instanceof StatusError && (error.code === 401 || error.code === 403)) exchange.abort();
  }
}

/**
 * Returns the next time, by `performance.now()`, at which all streams of this user are rechecked together. The times of
 * the users are spread over the interval.
 */
function nextRecheck({ user }: Exchange): number {
  const now = performance.now();
  let phase = 0;
  for (const character of user?.username ?? '')
    phase = (phase * 31 + (character.codePointAt(0) ?? 0)) % recheckInterval;
  return now + recheckInterval - ((now + recheckInterval - phase) % recheckInterval);
}
