import type { Cut, LogRecord, LogStore } from './log-store.ts';

export type LogStream = AsyncGenerator<readonly LogRecord[], Cut>;
export type StoreOperation = 'query' | 'statistics' | 'histogram' | 'export' | 'follow' | 'check';

/** Wraps each operation of a store; `run` executes it. */
export interface StoreDecorator {
  call<T>(
    this: void,
    operation: StoreOperation,
    signal: AbortSignal,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T>;
  stream(
    this: void,
    operation: StoreOperation,
    signal: AbortSignal,
    run: (signal: AbortSignal) => LogStream,
  ): LogStream;
}

export function wrapped(store: LogStore, { call, stream }: StoreDecorator): LogStore {
  const { name } = store;
  const follow = store.follow?.bind(store);
  return {
    name,
    query: (selection, page, signal) => call('query', signal, (own) => store.query(selection, page, own)),
    statistics: (selection, signal) => call('statistics', signal, (own) => store.statistics(selection, own)),
    histogram: (selection, interval, signal) =>
      call('histogram', signal, (own) => store.histogram(selection, interval, own)),
    export: (selection, order, signal) => stream('export', signal, (own) => store.export(selection, order, own)),
    ...(follow === undefined
      ? {}
      : { follow: (selection, signal) => stream('follow', signal, (own) => follow(selection, own)) }),
    check: (signal) => call('check', signal, (own) => store.check(own)),
    close: () => store.close(),
  };
}
