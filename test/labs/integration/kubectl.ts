import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { foundPath, lab } from './lab.ts';
import { startProgram, type Program } from './program.ts';

/** Runs kubectl in a specific version with the administrator's kubeconfig. */
export interface Kubectl {
  (...args: readonly string[]): Promise<Executed>;
  /** Starts kubectl in the background. The test must end the program. */
  start(...args: readonly string[]): Program;
}

const environment = (): Readonly<Record<string, string>> => ({
  KUBECONFIG: lab().kubeconfig,
  // The discovery cache is deleted with the state folder at the end of the run.
  KUBECACHEDIR: `${lab().dir}/kubectl-cache`,
  HOME: lab().dir,
});

const run = (program: () => string): Kubectl =>
  Object.assign(
    (...args: readonly string[]): Promise<Executed> =>
      execute(program(), args, { env: environment(), timeout: 60_000 }),
    { start: (...args: readonly string[]): Program => startProgram(program(), args, environment()) },
  );

/** Runs kubectl in the version of the cluster. */
export const kubectl: Kubectl = run(() => lab().kubectl);

/** Runs kubectl in another version: the version of Debian, or the version of the program that OTHER_KUBECTL names. */
export const otherKubectl: Kubectl = run(() => foundPath(lab().otherKubectl));

/** Runs kubectl and returns its standard output. Throws if kubectl fails. */
export async function succeed(client: Kubectl, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await client(...args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

/** Writes a manifest for kubectl, and returns the path of the file, which the next manifest replaces. */
export function manifestFile(manifest: string): string {
  const file = join(lab().dir, 'manifest.yaml');
  writeFileSync(file, manifest, { mode: 0o600 });
  return file;
}

/** Returns the arguments with which kubectl applies a manifest. kube-apiserver then rejects unknown fields. */
export const strictApply = (manifest: string, ...flags: readonly string[]): readonly string[] => [
  'apply',
  '--server-side',
  '--force-conflicts',
  '--validate=strict',
  ...flags,
  '-f',
  manifestFile(manifest),
];

/** Returns the rows of a table printed by kubectl, one cell per column. */
export function rows(table: string): string[][] {
  const lines = table.trimEnd().split('\n');
  const header = lines[0] ?? '';
  const starts = [...header.matchAll(/\S+(?: \S+)*/g)].map(({ index }) => index);
  return lines.map((line) => starts.map((start, at) => line.slice(start, starts[at + 1]).trim()));
}
