import type { LogRecord, LogStore, Selection } from './log-store.ts';
import { timeText } from '../query/times.ts';

/** Reports the number of dropped records of a store. */
export type Drop = (store: string, records: number) => void;

/**
 * Drops records outside the selection: records of other namespaces, and records from before the second from which their
 * namespace is visible. The query already contains this restriction, but the store is not trusted to apply it. Reports
 * the number of dropped records.
 */
export function withScope(store: LogStore, drop: Drop): LogStore {
  const follow = store.follow?.bind(store);

  function within({ namespaces }: Selection): (records: readonly LogRecord[]) => readonly LogRecord[] {
    if (namespaces === undefined) return (records) => records;
    const oldest = new Map([...namespaces].map(([name, since]) => [name, timeText(since)]));
    return (records) => {
      // '~' sorts after every time.
      const inScope = records.filter(({ namespace, time }) => time >= (oldest.get(namespace) ?? '~'));
      if (inScope.length < records.length) drop(store.name, records.length - inScope.length);
      return inScope;
    };
  }

  async function* filtered(selection: Selection, pieces: ReturnType<LogStore['export']>): typeof pieces {
    const filter = within(selection);
    try {
      for (;;) {
        const piece = await pieces.next();
        if (piece.done === true) return piece.value;
        const records = filter(piece.value);
        // An empty result is skipped, because a tail would write an empty chunk, which would end the body.
        if (records.length > 0) yield records;
      }
    } finally {
      await pieces.return({});
    }
  }

  return {
    ...store,
    async query(selection, page, signal) {
      const found = await store.query(selection, page, signal);
      const records = within(selection)(found.records);
      return { ...found, records, total: found.total - (found.records.length - records.length) };
    },
    export: (selection, order, signal) => filtered(selection, store.export(selection, order, signal)),
    ...(follow === undefined ? {} : { follow: (selection, signal) => filtered(selection, follow(selection, signal)) }),
  };
}
