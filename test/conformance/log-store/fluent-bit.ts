/** Records as fluent-bit writes them for KubeSphere, loaded into a server in bulk. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';

export const indexPrefix = 'ks-whizard-logging';
const perRequest = 5_000;
const maxBytes = 8 * 1024 * 1024;

/**
 * Every other record is in the format of containerd: nanoseconds without leading zeros, and no docker_id. `@timestamp`
 * has the correct milliseconds.
 */
function documentOf({ time, namespace, pod, container, log }: LogRecord, index: number): object {
  const isContainerd = index % 2 === 0;
  const unpadded = `${time.slice(0, 20)}${Number(time.slice(20, 29))}Z`;
  return {
    '@timestamp': `${time.slice(0, 23)}Z`,
    log: `${log}\n`,
    time: isContainerd ? unpadded : time,
    kubernetes: {
      pod_name: pod,
      namespace_name: namespace,
      container_name: container,
      ...(isContainerd ? {} : { docker_id: `${namespace}${pod}${container}` }),
    },
  };
}

async function send(url: string, path: string, body: string, method: 'POST' | 'PUT' = 'POST'): Promise<unknown> {
  const type = path === '/_bulk' ? 'application/x-ndjson' : 'application/json';
  const response = await fetch(`${url}${path}`, { method, body, headers: { 'Content-Type': type } });
  const text = await response.text();
  if (response.status === 429) {
    // The heap of the server is full until its garbage is collected. Fluent-bit also retries after this status.
    await sleep(1_000);
    return await send(url, path, body, method);
  }
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 1_000)}`);
  return JSON.parse(text);
}

/** `shards` is the number of shards per index; `isTyped` is for Elasticsearch 6. */
export async function load(
  url: string,
  records: readonly LogRecord[],
  { shards, isTyped }: { readonly shards: number; readonly isTyped: boolean },
): Promise<void> {
  const settings = { number_of_shards: shards, number_of_replicas: 0, refresh_interval: '-1' };
  await send(url, '/_template/logs', JSON.stringify({ index_patterns: ['ks-*'], settings }), 'PUT');
  let lines: string[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (lines.length === 0) return;
    const { errors, items } = (await send(url, '/_bulk', `${lines.join('\n')}\n`)) as {
      errors: boolean;
      items: unknown[];
    };
    if (errors) throw new Error(`some records were rejected: ${JSON.stringify(items.slice(0, 3))}`);
    lines = [];
    bytes = 0;
  };
  for (const [index, record] of records.entries()) {
    const day = record.time.slice(0, 10).replaceAll('-', '.');
    const action = { _index: `${indexPrefix}-${day}`, ...(isTyped ? { _type: 'flb_type' } : {}) };
    const document = JSON.stringify(documentOf(record, index));
    lines.push(JSON.stringify({ index: action }), document);
    bytes += document.length;
    if (lines.length >= 2 * perRequest || bytes > maxBytes) await flush();
  }
  await flush();
  await send(url, '/_refresh', '');
}
