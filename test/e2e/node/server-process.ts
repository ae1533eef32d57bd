/** Processes of the server on the node. */
import { strictEqual } from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { Pod } from '../release.ts';

/** Returns the id of the server process whose control group has the uid of the pod in its name. */
export function serverProcess(pod: Pod | undefined): number {
  const uid = pod?.metadata.uid ?? 'none';
  const found = readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      textOf(`/proc/${pid}/cgroup`).includes(uid) &&
      textOf(`/proc/${pid}/cmdline`).includes('--service-name'),
  );
  strictEqual(found.length, 1);
  return Number(found[0]);
}

/** Returns the resident memory of the server in a pod, in MB. */
export function residentMemory(pod: Pod): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(textOf(`/proc/${serverProcess(pod)}/status`)) ?? [];
  return Math.round((Number(kilobytes) * 1024) / 1e6);
}

/** Returns the content of a file in /proc, or '' if the process has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
