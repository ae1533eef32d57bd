/** Runs a real Prometheus on loopback, built from the module pinned in programs/go.mod. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goProgram } from '../cluster/go-program.ts';
import { run, type RunningService } from '../cluster/running.ts';

const modules = join(import.meta.dirname, 'programs');
const commands = 'github.com/prometheus/prometheus/cmd';
/** Build tags that leave out all service discovery except that of Kubernetes. */
const tags = ['remove_all_sd', 'enable_kubernetes_sd'];

/** Maximum duration of the first build of Prometheus and promtool on a busy machine, in milliseconds. */
export const buildTimeout = 3_600_000;

/** Returns the path of promtool, which checks rules and runs their unit tests. */
export const promtool = (): Promise<string> => goProgram(modules, `${commands}/promtool`, tags);

export const prometheusProgram = (): Promise<string> => goProgram(modules, `${commands}/prometheus`, tags);

/** Starts Prometheus with a configuration. Prometheus stores its data in `dir`. */
export async function startPrometheus(dir: string, port: number, configuration: object): Promise<RunningService> {
  const prometheus = await prometheusProgram();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, 'prometheus.json');
  await writeFile(file, JSON.stringify(configuration));
  const flags = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ];
  return await run({
    name: 'prometheus',
    url: `http://127.0.0.1:${port}`,
    command: [prometheus, ...flags],
    cwd: dir,
    readyPath: '/-/ready',
  });
}
