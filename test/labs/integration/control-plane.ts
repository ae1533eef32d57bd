/** Stops and starts kube-apiserver, and reads its log. */
import { readFileSync } from 'node:fs';
import { assertAlive, find, logFile, start, stop, type Command } from '../../../hack/cluster/processes.ts';
import { until } from '../../../hack/cluster/until.ts';
import { kube } from './kube.ts';
import { lab } from './lab.ts';

const apiserver = 'kube-apiserver';

/**
 * Kills kube-apiserver as if its machine had failed. Returns a function that starts it again with the same log file and
 * with additional flags.
 */
export async function stopApiserver(): Promise<(...flags: readonly string[]) => Promise<void>> {
  const { dir } = lab();
  const running = find(dir, apiserver);
  if (running === undefined) throw new Error('kube-apiserver is not running');
  await stop(dir, running, 'SIGKILL');
  return async (...flags) => {
    const [program, ...rest] = running.command as Command;
    const started = await start(dir, apiserver, [program, ...rest, ...flags], 'a');
    await until(
      'kube-apiserver is ready again',
      () => assertAlive(dir, [started]),
      async () => {
        const { status, body } = await kube().stream('/readyz');
        body.resume();
        return status === 200;
      },
    );
  };
}

/** Calls etcd's JSON gateway. */
async function etcd(path: string, body: object): Promise<unknown> {
  const urls = find(lab().dir, 'etcd')?.command.find((flag) => flag.startsWith('--listen-client-urls='));
  if (urls === undefined) throw new Error('etcd is not running');
  const response = await fetch(`${urls.split('=')[1]}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd returned ${response.status}: ${await response.text()}`);
  return response.json();
}

/** Deletes the history of the cluster in etcd and in the caches of kube-apiserver, as a compaction does. */
export async function forgetPast(): Promise<void> {
  const startApiserver = await stopApiserver();
  const { header } = (await etcd('kv/range', { key: btoa('nothing') })) as { header: { revision: string } };
  await etcd('kv/compaction', { revision: header.revision });
  await startApiserver();
}

/** Returns the warnings and errors in kube-apiserver's log, including entries of several lines. */
export const apiserverComplaints = (): string[] => apiserverLog().filter((entry) => /^[WEF]/.test(entry));

/** Returns the entries of the log across all restarts. */
const apiserverLog = (): string[] => readFileSync(logFile(lab().dir, apiserver), 'utf8').split(/^(?=[IWEF]\d{4} )/m);

/** Milliseconds after the start of kube-apiserver in which it may still be reading objects. */
const startTime = 5_000;
const processOf = (entry: string): string | undefined => /^[IWEF]\d{4} \S+ +(\d+)/.exec(entry)?.[1];

/** Returns whether kube-apiserver wrote the entry just after its start. */
export function wasStarting(entry: string): boolean {
  const first = apiserverLog().find((one) => processOf(one) === processOf(entry)) ?? entry;
  return timeOf(entry) - timeOf(first) < startTime;
}

/** Returns the time of an entry in milliseconds since the epoch. The log has local times without a year. */
export function timeOf(entry: string): number {
  const [, month, day, time] = /^[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{3})/.exec(entry) ?? [];
  return new Date(`${new Date().getFullYear()}-${month}-${day}T${time}`).getTime();
}
