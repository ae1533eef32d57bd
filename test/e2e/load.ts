/** Requests one after the other while something happens to the servers. */
import { strictEqual } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import type { Client } from './curl.ts';

interface Answer {
  /** '200', or the status and the error. */
  readonly result: string;
  readonly milliseconds: number;
}

export interface Load {
  /** Whose requests these are, for the report. */
  readonly says: string;
  /** Begins. What is returned ends it and answers all. */
  start(): () => Promise<Answer[]>;
}

/** Runs the loads while `work` does, and a little longer. Throws if any request failed; else says how many there were. */
export async function under(loads: readonly Load[], work: () => Promise<unknown>): Promise<string> {
  const running = loads.map((load) => ({ says: load.says, stop: load.start() }));
  const outcomes: { says: string; answers: Answer[] }[] = [];
  try {
    await sleep(500);
    await work();
    await sleep(1000);
  } finally {
    for (const { says, stop } of running) outcomes.push({ says, answers: await stop() });
  }
  const failures = outcomes.flatMap(({ says, answers }) => {
    const failed = answers.filter(({ result }) => result !== '200');
    const kinds = [...new Set(failed.map(({ result }) => result))];
    if (answers.length < 10) return `${says}: only ${answers.length} requests were made`;
    return failed.length === 0 ? [] : `${says}: ${failed.length} of ${answers.length} failed: ${kinds.join(', ')}`;
  });
  strictEqual(failures.join('\n'), '');
  return outcomes
    .map(({ says, answers }) => {
      const slowest = Math.max(...answers.map(({ milliseconds }) => milliseconds));
      return `${answers.length} ${says}, the slowest in ${Math.round(slowest)} ms`;
    })
    .join('; ');
}

/** By curl: one connection for all, as long as the server keeps it, or else one for each. */
export function byCurl(client: Client, url: string, token: string, connections: 'one' | 'each'): Load {
  const flags = [
    `--silent --output /dev/null --max-time 10 --header 'Authorization: Bearer ${token}'`,
    // Standard output would be kept back, and lost at the end.
    String.raw`--write-out '%{stderr}%{http_code} %{time_total} %{errormsg}\n'`,
  ].join(' ');
  const command =
    connections === 'one'
      ? // The fragment gives the range its place and does not change the requests.
        `exec curl ${flags} --rate 30/s '${url}#[1-100000]'`
      : `while true; do curl ${flags} '${url}'; usleep 20000; done`;
  return {
    says: connections === 'one' ? 'on one connection' : 'on a connection each',
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
    says: 'through kube-apiserver',
    start() {
      const answers: Answer[] = [];
      const stopped = new AbortController();
      const loop = async (): Promise<void> => {
        for (; !stopped.signal.aborted; await sleep(20)) {
          const begin = performance.now();
          const result = await kube.json(path).then(
            () => '200',
            (error: unknown) => String(error),
          );
          answers.push({ result, milliseconds: performance.now() - begin });
        }
      };
      const done = loop();
      return async () => {
        stopped.abort();
        await done;
        return answers;
      };
    },
  };
}
