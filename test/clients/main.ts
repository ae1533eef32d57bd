/**
 * make test-clients: builds clients that this project did not write, and uses them with the server and a real
 * kube-apiserver. `node test/clients/main.ts [NAME…]` selects clients. Prints a table of flows; exits with 1 after a
 * failure.
 */
import { seconds } from '../../hack/cluster/progress.ts';
import { problemsInLogs } from '../labs/integration/log-problems.ts';
import { startSite } from './site.ts';
import type { Built, Tool } from './tool.ts';
import { tools } from './tools/all.ts';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !tools.some((tool) => tool.name === name));
if (unknown.length > 0) {
  console.error(`unknown client ${unknown.join(', ')}; available: ${tools.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

interface Row {
  readonly client: string;
  readonly flow: string;
  readonly time: string;
  readonly problem?: string;
}

const rows: Row[] = [];

/** Adds a row, and returns the result unless the work fails. */
async function record<T>(client: string, flow: string, work: () => Promise<T>): Promise<T | undefined> {
  const started = performance.now();
  try {
    const result = await work();
    rows.push({ client, flow, time: seconds(started) });
    return result;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    rows.push({ client, flow, time: seconds(started), problem });
    console.error(`${client}, ${flow}: ${problem}`);
    return undefined;
  }
}

const built: [Tool, Built][] = [];
for (const tool of tools.filter(({ name }) => names.length === 0 || names.includes(name))) {
  const client = await record(tool.name, 'build', () => tool.build());
  if (client !== undefined) built.push([tool, client]);
}
const site = await startSite();
try {
  for (const [tool, client] of built)
    for (const [flow, run] of Object.entries(tool.flows))
      await record(`${tool.name} ${client.version}`, flow, () => run(client, site));
  await record('server', 'logs no bug and no secret', async () => {
    const problems = problemsInLogs();
    if (problems.length > 0) throw new Error(problems.join('\n'));
  });
} finally {
  await site.stop();
}

const width = (of: (row: Row) => string): number => Math.max(...rows.map((row) => of(row).length));
const [clients, flows] = [width(({ client }) => client), width(({ flow }) => flow)];
for (const { client, flow, time, problem } of rows)
  console.log(
    [client.padEnd(clients), flow.padEnd(flows), problem === undefined ? 'pass' : 'FAIL', time.padStart(8)].join('  '),
  );
const failed = rows.filter(({ problem }) => problem !== undefined);
for (const { client, flow, problem } of failed) console.log(`\n${client}, ${flow}: ${problem}`);
console.log(`${rows.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;
