import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { demand, lab } from './lab.ts';
import { startProgram, type Program } from './program.ts';

/** A kubectl of some version, with the administrator's kubeconfig. */
export interface Kubectl {
  (...args: readonly string[]): Promise<Executed>;
  /** Runs beside the test until it is ended. */
  start(...args: readonly string[]): Program;
}

const environment = (): Readonly<Record<string, string>> => ({
  KUBECONFIG: lab().kubeconfig,
  // A cache of discovery that lives no longer than the run.
  KUBECACHEDIR: `${lab().dir}/kubectl-cache`,
  HOME: lab().dir,
});

const run = (program: () => string): Kubectl =>
  Object.assign(
    (...args: readonly string[]): Promise<Executed> =>
      execute(program(), args, { env: environment(), timeout: 60_000 }),
    { start: (...args: readonly string[]): Program => startProgram(program(), args, environment()) },
  );

/** Of the cluster's own version. */
export const kubectl: Kubectl = run(() => lab().kubectl);

/** Of another version: Debian's, unless OTHER_KUBECTL names one. */
export const otherKubectl: Kubectl = run(() => demand(lab().otherKubectl));

/** The standard output of a call that must succeed. */
export async function succeed(client: Kubectl, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await client(...args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

/** The rows of a table that kubectl printed, each a cell per column. */
export function rows(table: string): string[][] {
  const lines = table.trimEnd().split('\n');
  const header = lines[0] ?? '';
  const starts = [...header.matchAll(/\S+(?: \S+)*/g)].map(({ index }) => index);
  return lines.map((line) => starts.map((start, at) => line.slice(start, starts[at + 1]).trim()));
}
