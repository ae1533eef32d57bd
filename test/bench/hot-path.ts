/** Measures the CPU time that each shortcut of the hot path saves, as a fraction of a small GET (ADR 6). */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { logIn, startBenchLab } from './lab/lab.ts';
import { concurrency } from './job.ts';
import { measureCase } from './measure.ts';
import { request } from './requests.ts';
import type { Shortcut } from './shortcuts.ts';
import { figure } from './table.ts';

export interface HotPath {
  /** CPU time of a GET of one node, in microseconds. */
  readonly get: number;
  readonly shortcuts: readonly Shortcut[];
}

export const isTooSlow = ({ ratio, min }: Shortcut): boolean => ratio < min;

const seconds = 3;

async function measureGet(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'platform-apiserver-bench-hot-path-'));
  // The file stays empty, because no node changes during the measurement.
  const changes = join(folder, 'changes');
  await writeFile(changes, '');
  const lab = await startBenchLab({ audit: {} });
  try {
    const token = await logIn(lab, 'user-0');
    const name = 'node-17';
    const get = request(`/kapis/resources.platform.io/v1alpha3/nodes/${name}`, { name }, { token });
    const job = {
      target: { host: '127.0.0.1', port: lab.port },
      requests: Array.from({ length: 10 }, () => get),
      pids: [lab.server.pid ?? 0],
      behind: [],
      changes,
      concurrency,
      seconds,
    };
    const subject = { server: 'ours', label: 'a small GET', job } as const;
    const one = { name: 'hot-path', title: 'a small GET', subjects: [subject] };
    const [row] = await measureCase(one, [], new AbortController().signal);
    if (row === undefined || row.problems.length > 0) throw new Error(row?.problems.join('; '));
    return row.figures.cpu * 1_000;
  } finally {
    await lab.stop();
    await rm(folder, { recursive: true });
  }
}

async function measureShortcuts(): Promise<Shortcut[]> {
  const child = fork(fileURLToPath(import.meta.resolve('./shortcuts.ts')), {
    execArgv: ['--max-semi-space-size=16', '--no-allocation-site-pretenuring'],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const shortcuts: Shortcut[] = [];
  child.stdout?.resume();
  child.on('message', (shortcut) => shortcuts.push(shortcut as Shortcut));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`the bench of the shortcuts ended with ${code}`);
  return shortcuts;
}

export const measureHotPath = async (): Promise<HotPath> => ({
  get: await measureGet(),
  shortcuts: await measureShortcuts(),
});

export const describeHotPath = ({ get, shortcuts }: HotPath): string =>
  [
    `hot path: µs of CPU with and without each shortcut, the ratio, and the saving as a share of a small GET of ${figure(get)} µs`,
    ...shortcuts.map((one) => {
      const { name, short, plain, saved, ratio, min } = one;
      const share = saved === 0 ? '' : `${figure((100 * saved) / get)} %`;
      const verdict = isTooSlow(one) ? `FAILED: at least ×${min}` : `at least ×${min}`;
      return `  ${name.padEnd(48)} ${figure(short).padStart(7)} ${figure(plain).padStart(7)}   ×${figure(ratio).padEnd(6)} ${share.padStart(7)}   ${verdict}`;
    }),
  ].join('\n');
