/** Sequential requests while the servers are changed. */
import { strictEqual } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import type { Client } from './curl.ts';

interface LoadResponse {
  /** Result: '200', or the status and the error. */
  readonly result: string;
  readonly milliseconds: number;
}

export interface Load {
  /** Name of the client for the report. */
  readonly label: string;
  /** Starts the load. Returns a function that ends it and returns all results. */
  start(): () => Promise<LoadResponse[]>;
}

/** Runs the loads during `work` and a little longer. Throws if any request failed, otherwise returns their number. */
export async function under(loads: readonly Load[], work: () => Promise<unknown>): Promise<string> {
  const running = loads.map((load) => ({ label: load.label, stop: load.start() }));
  const outcomes: { label: string; responses: LoadResponse[] }[] = [];
  try {
    await sleep(500);
    await work();
    await sleep(1000);
  } finally {
    for (const { label, stop } of running) outcomes.push({ label, responses: await stop() });
  }
  const failures = outcomes.flatMap(({ label, responses }) => {
    const failed = responses.filter(({ result }) => result !== '200');
    const kinds = [...new Set(failed.map(({ result }) => result))];
    if (responses.length < 10) return `${label}: only ${responses.length} requests were made`;
    return failed.length === 0 ? [] : `${label}: ${failed.length} of ${responses.length} failed: ${kinds.join(', ')}`;
  });
  strictEqual(failures.join('\n'), '');
  return outcomes
    .map(({ label, responses }) => {
      const slowest = Math.max(...responses.map(({ milliseconds }) => milliseconds));
      return `${responses.length} ${label}, the slowest in ${Math.round(slowest)} ms`;
    })
    .join('; ');
}

/** Uses curl: one connection for all requests as long as the server keeps it, or one for each. */
export function byCurl(client: Client, url: string, token: string, connections: 'one' | 'each'): Load {
  const flags = [
    `--silent --output /dev/null --max-time 10 --header 'Authorization: Bearer ${token}'`,
    // Standard output would be buffered and lost at the end.
    String.raw`--write-out '%{stderr}%{http_code} %{time_total} %{errormsg}\n'`,
  ].join(' ');
  const command =
    connections === 'one'
      ? // The fragment holds the range and is not sent.
        `exec curl ${flags} --rate 30/s '${url}#[1-100000]'`
      : `while true; do curl ${flags} '${url}'; usleep 20000; done`;
  return {
    label: connections === 'one' ? 'on one connection' : 'on a connection each',
    start() {
      const marker = `/tmp/load-${connections}`;
      const text = client.untilKilled(`echo $$ > ${marker}; exec 2>&1; ${command}`);
      return async () => {
        await client.shell(`kill $(cat ${marker})`);
        const lines = (await text).split('\n').slice(0, -1);
        return lines.map((line) => {
          const [status = '', time = '', ...message] = line.split(' ');
          return { result: [status, ...message].join(' ').trim(), milliseconds: Number(time) * 1000 };
        });
      };
    },
  };
}

export function byAggregator(kube: KubeClient, path: string): Load {
  return {
    label: 'through kube-apiserver',
    start() {
      const responses: LoadResponse[] = [];
      const stopped = new AbortController();
      const loop = async (): Promise<void> => {
        for (; !stopped.signal.aborted; await sleep(20)) {
          const begin = performance.now();
          const result = await kube.json(path).then(
            () => '200',
            (error: unknown) => String(error),
          );
          responses.push({ result, milliseconds: performance.now() - begin });
        }
      };
      const done = loop();
      return async () => {
        stopped.abort();
        await done;
        return responses;
      };
    },
  };
}
