/** Pushes records to Loki like a shipper, one stream per container and output. */
import { until } from '../../../hack/cluster/until.ts';
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';

const perRequest = 5_000;
const maxBytes = 4 * 1024 * 1024;

const nanoseconds = (time: string): string => `${Date.parse(`${time.slice(0, 19)}Z`) / 1_000}${time.slice(20, 29)}`;

export interface PushOptions {
  readonly tenant: string;
  /** Returns the line that Loki stores for a record. By default, the line is the text of the record. */
  readonly lineOf?: (record: LogRecord) => string;
}

export async function push(
  url: string,
  records: readonly LogRecord[],
  { tenant, lineOf = ({ log }) => log }: PushOptions,
): Promise<void> {
  const headers = { 'Content-Type': 'application/json', 'X-Scope-OrgID': tenant };
  const send = async (path: string, body: string): Promise<void> => {
    const response = await fetch(`${url}${path}`, { method: 'POST', body, headers });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${(await response.text()).slice(0, 1_000)}`);
  };
  let streams = new Map<string, [string, string][]>();
  let [count, bytes] = [0, 0];
  const pushed = async (): Promise<void> => {
    if (count === 0) return;
    const all = [...streams].map(([labels, values]) => ({ stream: JSON.parse(labels) as object, values }));
    await send('/loki/api/v1/push', JSON.stringify({ streams: all }));
    streams = new Map();
    [count, bytes] = [0, 0];
  };
  // A stream rejects records that are much older than its newest record.
  const inTime = records.toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  for (const record of inTime) {
    const { time, namespace, pod, container, log } = record;
    const labels = JSON.stringify({
      namespace,
      pod,
      container,
      stream: /error|panic/i.test(log) ? 'stderr' : 'stdout',
    });
    const values = streams.get(labels) ?? [];
    streams.set(labels, values);
    const line = lineOf(record);
    values.push([nanoseconds(time), line]);
    count += 1;
    bytes += line.length;
    if (count >= perRequest || bytes > maxBytes) await pushed();
  }
  await pushed();
  // Loki reads old records only from flushed chunks.
  await send('/flush', '');
  await until(
    'Loki has written everything',
    async () => undefined,
    async () => /^loki_ingester_memory_chunks 0$/m.test(await (await fetch(`${url}/metrics`)).text()),
    180_000,
  );
}
