import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { startLoki, type TenantLimits } from '../../../hack/log-stores/loki.ts';
import type { LogStoreSettings } from '../../../src/config/log-stores.ts';
import type { LogRecord, LogStore } from '../../../src/logs/stores/log-store.ts';
import { loki } from '../../../src/logs/stores/loki/store.ts';
import { openForTest } from '../../labs/fake-store.ts';
import { push } from './loki-push.ts';
import type { Stand } from './suite.ts';

export const openLoki = (url: string, tenant: string, more: Partial<LogStoreSettings<'loki'>> = {}): LogStore =>
  openForTest(loki, {
    url,
    tenant,
    labels: { namespace: 'namespace', pod: 'pod', container: 'container' },
    ...more,
  });

/** Starts a real Loki with a tenant that has these records. `limits` apply to other tenants. */
export async function lokiStand(records: readonly LogRecord[], limits?: TenantLimits): Promise<Stand> {
  const dir = await mkdtemp(join(tmpdir(), 'platform-apiserver-log-store-'));
  const server = await startLoki(dir, await freePort(29_000 + seed(dir, 1_000)), limits);
  await push(server.url, records, { tenant: 'platform' });
  const store = openLoki(server.url, 'platform');
  return {
    store,
    url: server.url,
    async close() {
      await store.close();
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
