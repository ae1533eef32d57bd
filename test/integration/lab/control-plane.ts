/** kube-apiserver itself: its log, and what happens without it. */
import { readFileSync } from 'node:fs';
import { find, logFile, start, stop, type Command } from '../../../hack/cluster/processes.ts';
import { until } from '../../../hack/cluster/until.ts';
import { kube } from './kube.ts';
import { lab } from './lab.ts';

const apiserver = 'kube-apiserver';

/** Ends kube-apiserver at once, as if its machine had failed; answers what starts it again, with a new log. */
export async function stopApiserver(): Promise<() => Promise<void>> {
  const { dir } = lab();
  const running = find(dir, apiserver);
  if (running === undefined) throw new Error('kube-apiserver does not run');
  await stop(dir, running, 'SIGKILL');
  return async () => {
    await start(dir, apiserver, running.command as Command);
    await until(
      'kube-apiserver is ready again',
      () => Promise.resolve(),
      async () => {
        const { status, body } = await kube().stream('/readyz');
        body.resume();
        return status === 200;
      },
    );
  };
}

/** The warnings and errors in kube-apiserver's log, with all the lines of each. */
export const apiserverComplaints = (): string[] =>
  readFileSync(logFile(lab().dir, apiserver), 'utf8')
    .split(/^(?=[IWEF]\d{4} )/m)
    .filter((entry) => /^[WEF]/.test(entry));
