import type { LogRecord, LogStore, LogStoreType, Selection } from '../../src/logs/stores/log-store.ts';
import type { SecretReader } from '../../src/logs/stores/remote/endpoint.ts';
import { MemoryCluster } from '../fakes/cluster.ts';

export const everything: Selection = {
  start: undefined,
  end: 2_000_000_000,
  namespaces: undefined,
  workloads: [],
  pods: [],
  containers: [],
  keywords: { namespace: [], workload: [], pod: [], container: [], log: [] },
};

export const record = (log: string): LogRecord => ({
  time: '2026-03-01T00:00:00.000000000Z',
  namespace: 'a',
  pod: 'b',
  container: 'c',
  log,
});

/** Log store in memory, without records by default. */
export const fakeStore = (more: Partial<LogStore> = {}): LogStore => ({
  name: 'fake',
  query: async () => ({ total: 0, records: [] }),
  statistics: async () => ({ containers: 0, logs: 0 }),
  histogram: async () => ({ total: 0, histograms: [] }),
  async *export() {
    yield [record('one')];
    return {};
  },
  check: async () => undefined,
  close: async () => undefined,
  ...more,
});

/** Opens a store for one caller in a cluster without pods. */
export const openForTest = <S>(
  { open }: LogStoreType<S>,
  settings: S,
  secrets: SecretReader = { read: () => undefined },
): LogStore => open(settings, { secrets, listPods: async () => [] })(new MemoryCluster().client(), '');
