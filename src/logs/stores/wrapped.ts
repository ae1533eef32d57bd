import type { Cut, LogRecord, LogStore } from './log-store.ts';

export type Stream = AsyncGenerator<readonly LogRecord[], Cut>;
export type Operation = 'query' | 'statistics' | 'histogram' | 'export' | 'follow' | 'check';

/** What is done around what a store is asked; `run` asks it. */
export interface Around {
  ask<T>(this: void, operation: Operation, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T>;
  stream(this: void, operation: Operation, signal: AbortSignal, run: (signal: AbortSignal) => Stream): Stream;
}

export function wrapped(store: LogStore, { ask, stream }: Around): LogStore {
  const { name, capabilities } = store;
  const follow = store.follow?.bind(store);
  return {
    name,
    capabilities,
    query: (selection, page, signal) => ask('query', signal, (own) => store.query(selection, page, own)),
    statistics: (selection, signal) => ask('statistics', signal, (own) => store.statistics(selection, own)),
    histogram: (selection, interval, signal) =>
      ask('histogram', signal, (own) => store.histogram(selection, interval, own)),
    export: (selection, order, signal) => stream('export', signal, (own) => store.export(selection, order, own)),
    ...(follow === undefined
      ? {}
      : { follow: (selection, signal) => stream('follow', signal, (own) => follow(selection, own)) }),
    check: (signal) => ask('check', signal, (own) => store.check(own)),
    close: () => store.close(),
  };
}
