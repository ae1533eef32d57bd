/**
 * Compares the results of the programs in test/clients. The programs read core nodes directly from kube-apiserver, core
 * nodes through the gateway, and the nodes of the platform.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { output } from '../../../hack/cluster/exec.ts';
import type { Difference } from '../../clients/differences.ts';
import { aggregated, secureGateway } from './http.ts';
import { foundPath, lab } from './lab.ts';
import { adminToken } from './login.ts';

type Target = 'core' | 'gateway' | 'aggregated' | 'direct';

/** A line of a program's output. */
interface Line {
  readonly case: string;
  readonly target: Target;
  readonly result: unknown;
}

export type Seen = ReadonlyMap<string, Readonly<Record<Target, unknown>>>;

/** Writes a kubeconfig for one of the server's ports with a bearer token. */
export async function kubeconfigOf(name: string, server: string): Promise<string> {
  const file = join(lab().dir, `${name}.kubeconfig`);
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority': lab().authorityFile } }],
    users: [{ name, user: { token: await adminToken() } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  };
  writeFileSync(file, stringify(content), { mode: 0o600 });
  return file;
}

async function see(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const text = await output(program, args, { timeout: 300_000, env });
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  return new Map(
    [...Map.groupBy(lines, (line) => line.case)].map(([name, of]) => [
      name,
      Object.fromEntries(of.map(({ target, result }) => [target, result])) as Record<Target, unknown>,
    ]),
  );
}

/** Returns the arguments of the programs. */
const kubeconfigs = async (): Promise<string[]> => [
  lab().kubeconfig,
  await kubeconfigOf('gateway', secureGateway()),
  await kubeconfigOf('direct', aggregated()),
];

export const goCases = async (): Promise<Seen> => see(lab().go.cases, [...(await kubeconfigs()), '.']);

export const pythonCases = async (): Promise<Seen> =>
  see('python3', [join(import.meta.dirname, '../../clients/python/cases.py'), ...(await kubeconfigs())], {
    PYTHONPATH: foundPath(lab().pythonPackages),
    PYTHONDONTWRITEBYTECODE: '1',
  });

const isBranch = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Returns the paths and the values of the leaves in which two results differ. */
function leaves(core: unknown, ours: unknown, at = ''): { at: string; core: unknown; ours: unknown }[] {
  if (isBranch(core) && isBranch(ours) && Array.isArray(core) === Array.isArray(ours))
    return [...new Set([...Object.keys(core), ...Object.keys(ours)])].flatMap((key) =>
      leaves(core[key], ours[key], `${at}/${key}`),
    );
  return core === ours ? [] : [{ at, core, ours }];
}

/** Returns the differences between responses of the gateway and of kube-apiserver, with the names of their cases. */
export const changedByGateway = (seen: Seen): unknown[] =>
  [...seen].flatMap(([name, { core, gateway }]) => leaves(core, gateway).map((leaf) => ({ case: name, ...leaf })));

/**
 * Returns the differences between the platform's nodes and core nodes, in the form of the documented table. A
 * difference that occurs both directly and through kube-apiserver is returned once.
 */
export function differencesIn(seen: Seen): Omit<Difference, 'reason'>[] {
  return [...seen].flatMap(([name, { core, aggregated: through, direct }]) => {
    const found = { aggregated: leaves(core, through), direct: leaves(core, direct) };
    if (JSON.stringify(found.aggregated) === JSON.stringify(found.direct))
      return found.direct.map((leaf) => ({ case: name, ...leaf }));
    return (['aggregated', 'direct'] as const).flatMap((via) =>
      found[via].map((leaf) => ({ case: name, via, ...leaf })),
    );
  });
}
