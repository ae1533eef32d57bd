/** Changes nodes at a constant rate, and records the times of the responses. */
import { openSync, readSync, closeSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { find, start, stop } from '../../hack/cluster/processes.ts';

export const changesPerSecond = 50;

const writer = fileURLToPath(import.meta.resolve('./writer.ts'));

export interface Changes {
  /** File that contains one record per change. */
  readonly file: string;
  /** Sets the number of changes per second; 0 stops them. */
  setRate(perSecond: number): Promise<void>;
}

/**
 * Starts an idle writer for the first `nodes` nodes of a control plane. The writer ends with the processes of the state
 * folder.
 */
export async function changesOf(
  { dir, kubeconfig }: { readonly dir: string; readonly kubeconfig: string },
  nodes: number,
): Promise<Changes> {
  const file = join(dir, 'changes');
  await writeFile(file, '');
  const setRate = async (rate: number): Promise<void> => {
    const running = find(dir, 'writer');
    if (running !== undefined) await stop(dir, running, 'SIGTERM');
    if (rate === 0) return;
    await start(dir, 'writer', [process.execPath, writer, kubeconfig, String(nodes), String(rate), file]);
  };
  return { file, setRate };
}

export interface Change {
  readonly resourceVersion: number;
  /** Time of the response to the write, in milliseconds of the machine's monotonic clock. */
  readonly time: number;
}

const length = 32;

export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

// Records have a fixed length, so that the file size gives their number.
export const record = ({ resourceVersion, time }: Change): string =>
  `${`${resourceVersion} ${time.toFixed(3)}`.padEnd(length - 1)}\n`;

/** Returns the number of records in the file. */
export const changesIn = (file: string): number => Math.floor(statSync(file).size / length);

/** Returns the records from index `first`. */
export function changesSince(file: string, first: number): Change[] {
  const bytes = Buffer.alloc((changesIn(file) - first) * length);
  const descriptor = openSync(file, 'r');
  readSync(descriptor, bytes, 0, bytes.length, first * length);
  closeSync(descriptor);
  return bytes
    .toString('latin1')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [resourceVersion, time] = line.trim().split(' ');
      return { resourceVersion: Number(resourceVersion), time: Number(time) };
    });
}
