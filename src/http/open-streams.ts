import type { Authenticator } from '../auth/authenticators/index.ts';
import { StatusError } from '../runtime/errors.ts';
import { Slice } from '../runtime/slice.ts';
import type { Exchange, RequestFilter } from './exchange.ts';
import { Wheel } from '../runtime/wheel.ts';

/** How often the rights of an open stream are checked, in milliseconds. */
const recheckInterval = 10_000;

interface Open {
  readonly authenticate: Authenticator;
  /** Its position on the wheel. */
  at: number;
}

/** The watches and streams that are open: they end with the identity that opened them, with its rights, and when the server drains. */
export class OpenStreams {
  readonly #open = new Map<Exchange, Open>();
  readonly #wheel = new Wheel<Exchange>((exchange) => this.#recheck(exchange));
  readonly #ofSession = new Map<string, Set<Exchange>>();

  /** Comes after authentication, by the same authenticator. */
  filter(authenticate: Authenticator): RequestFilter {
    return (exchange) => {
      if (!exchange.info.isLongRunning) return;
      // The same credential is never of another session.
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

  /** The session was revoked: what it may not read any more must not flow on. */
  endSession(sid: string): void {
    for (const exchange of this.#ofSession.get(sid) ?? []) exchange.abort();
  }

  /**
   * Users or clients changed: a watch whose credential is no longer good ends, and one whose user has other groups has its rights
   * asked about at once. One that cannot be judged now goes on.
   */
  async recheck(): Promise<void> {
    const slice = new Slice();
    for (const [exchange, { authenticate }] of this.#open) {
      if (slice.isOver) await slice.next();
      void reauthenticate(exchange, authenticate);
    }
  }

  /** All of them, evenly spread over `spread` milliseconds, so that their clients do not come back all at once. */
  endAll(spread: number): void {
    const all = [...this.#open.keys()];
    for (const [index, exchange] of all.entries())
      setTimeout(() => exchange.abort(), (index * spread) / Math.max(1, all.length)).unref();
  }

  #recheck(exchange: Exchange): void {
    const open = this.#open.get(exchange);
    if (open === undefined) return;
    // Nobody reports that a ServiceAccount or its pod was deleted, or that its token has expired.
    if (exchange.user?.via === 'token-review') void reauthenticate(exchange, open.authenticate);
    exchange.recheck();
    open.at = this.#wheel.put(exchange, nextRecheck(exchange));
  }

  #add(sid: string, exchange: Exchange): void {
    const streams = this.#ofSession.get(sid);
    if (streams === undefined) this.#ofSession.set(sid, new Set([exchange]));
    else streams.add(exchange);
  }

  #remove(sid: string, exchange: Exchange): void {
    const streams = this.#ofSession.get(sid);
    streams?.delete(exchange);
    if (streams?.size === 0) this.#ofSession.delete(sid);
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

/** Returns the next moment, by `performance.now()`, at which the streams of this user are rechecked together. Users are spread over the interval. */
function nextRecheck({ user }: Exchange): number {
  const now = performance.now();
  let phase = 0;
  for (const character of user?.username ?? '')
    phase = (phase * 31 + (character.codePointAt(0) ?? 0)) % recheckInterval;
  return now + recheckInterval - ((now + recheckInterval - phase) % recheckInterval);
}
