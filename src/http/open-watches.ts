import type { Exchange, Filter } from './exchange.ts';

/** The watches that are open: they end with their session, and when the server drains. */
export class OpenWatches {
  readonly #open = new Set<Exchange>();

  /** Comes after authentication. */
  readonly filter: Filter = (exchange) => {
    if (exchange.info.verb !== 'watch') return;
    this.#open.add(exchange);
    exchange.res.once('close', () => this.#open.delete(exchange));
  };

  get size(): number {
    return this.#open.size;
  }

  /** The session was revoked: what it may not read any more must not flow on. */
  endSession(sid: string): void {
    for (const exchange of this.#open) if (exchange.user?.sessionID === sid) exchange.abort();
  }

  /** All of them, evenly spread over `spread` milliseconds, so that their clients do not come back all at once. */
  endAll(spread: number): void {
    const all = [...this.#open];
    for (const [index, exchange] of all.entries())
      setTimeout(() => exchange.abort(), (index * spread) / Math.max(1, all.length)).unref();
  }
}
