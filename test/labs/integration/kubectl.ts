import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { foundPath, lab } from './lab.ts';
import { startProgram, type Program } from './program.ts';

/** kubectl in some version with the administrator's kubeconfig. */
export interface Kubectl {
  (...args: readonly string[]): Promise<Executed>;
  /** Starts a kubectl that runs beside the test until it is ended. */
  start(...args: readonly string[]): Program;
}

const environment = (): Readonly<Record<string, string>> => ({
  KUBECONFIG: lab().kubeconfig,
  // The discovery cache lives no longer than the run.
  KUBECACHEDIR: `${lab().dir}/kubectl-cache`,
  HOME: lab().dir,
});

const run = (program: () => string): Kubectl =>
  Object.assign(
    (...args: readonly string[]): Promise<Executed> =>
      execute(program(), args, { env: environment(), timeout: 60_000 }),
    { start: (...args: readonly string[]): Program => startProgram(program(), args, environment()) },
  );

/** Runs kubectl in the cluster's version. */
export const kubectl: Kubectl = run(() => lab().kubectl);

/** Runs kubectl in another version: Debian's, unless OTHER_KUBECTL is set. */
export const otherKubectl: Kubectl = run(() => foundPath(lab().otherKubectl));

/** Returns the standard output of a call that must succeed. */
export async function succeed(client: Kubectl, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await client(...args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

/** Returns the rows of a table printed by kubectl, one cell per column. */
export function rows(table: string): string[][] {
  const lines = table.trimEnd().split('\n');
  const header = lines[0] ?? '';
  const starts = [...header.matchAll(/\S+(?: \S+)*/g)].map(({ index }) => index);
  return lines.map((line) => starts.map((start, at) => line.slice(start, starts[at + 1]).trim()));
}
