/**
 * The programs of a cluster. Each comes from the first source that has it: the folder KUBEBUILDER_ASSETS; the prebuilt set that
 * setup-envtest fetches (etcd, kube-apiserver and kubectl only); a build of the Go modules pinned in programs/go.mod.
 * The last two are kept in the user's cache folder, so each is had once a machine.
 */
import { access, constants, copyFile, mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from './exec.ts';
import { cacheFolder, goBuildFlags, kubernetesVersion, modules } from './go-modules.ts';
import { withLock } from './lock.ts';
import { progress } from './progress.ts';

/** Every program and its Go package; all but coredns stand as tools in programs/go.mod. */
const packages = {
  coredns: './coredns',
  etcd: 'go.etcd.io/etcd/server/v3',
  helm: 'helm.sh/helm/v4/cmd/helm',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  kubelet: 'k8s.io/kubernetes/cmd/kubelet',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
  'setup-envtest': 'sigs.k8s.io/controller-runtime/tools/setup-envtest',
} as const;

export type Program = keyof typeof packages;

export const isProgram = (name: string): name is Program => Object.hasOwn(packages, name);

const prebuilt: readonly Program[] = ['etcd', 'kube-apiserver', 'kubectl'];

/** Absolute paths of the programs named, fetched or built first where need be. */
export async function programs<Name extends Program>(names: readonly Name[]): Promise<Record<Name, string>> {
  const found = new Map<Name, string>();
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (assets !== undefined && assets !== '') await add(found, names, assets);
  if (found.size < names.length) {
    const cache = await cacheFolder();
    await add(found, names, cache);
    if (found.size < names.length)
      await withLock(
        cache,
        () =>
          obtain(
            cache,
            names.filter((name) => !found.has(name)),
          ),
        () => console.error('waiting for the programs that another process is building'),
      );
    await add(found, names, cache);
  }
  return Object.fromEntries(found) as Record<Name, string>;
}

/** Links the programs named into `folder`, beside those that are there. */
export async function linkPrograms(folder: string, names: readonly Program[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, path] of Object.entries(await programs(names))) {
    const link = join(folder, `.${name}.${process.pid}`);
    await symlink(path, link);
    await rename(link, join(folder, name));
  }
}

async function add<Name extends Program>(found: Map<Name, string>, names: readonly Name[], folder: string) {
  for (const name of names) {
    const path = join(folder, name);
    if (!found.has(name) && (await executable(path))) found.set(name, path);
  }
}

const executable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/** Fetches or builds into the cache what is not there; the caller holds its lock. */
async function obtain(cache: string, names: readonly Program[]): Promise<void> {
  await mkdir(cache, { recursive: true });
  const missing = async (): Promise<Program[]> => {
    const rest: Program[] = [];
    for (const name of names) if (!(await executable(join(cache, name)))) rest.push(name);
    return rest;
  };
  const fetchable = (await missing()).filter((name) => prebuilt.includes(name));
  if (fetchable.length > 0) await fetchPrebuilt(cache, fetchable);
  const rest = await missing();
  for (const [index, name] of rest.entries()) await build(cache, name, `program ${index + 1} of ${rest.length}`);
}

async function build(cache: string, name: Program, count: string): Promise<void> {
  const step = progress(`building ${name} (${count})`);
  const path = join(cache, `.${name}`);
  const { code, stderr } = await execute('go', ['build', ...(await goBuildFlags()), '-o', path, packages[name]], {
    cwd: modules,
    env: { CGO_ENABLED: '0' },
    onStderr: (text) => step.detail(text.trim().split('\n').at(-1) ?? ''),
  });
  step.end(code === 0);
  if (code !== 0) throw new Error(`go build ${packages[name]} failed:\n${stderr}`);
  await rename(path, join(cache, name));
}

/** The official binaries, where the machine reaches them; else a line that says why not. */
async function fetchPrebuilt(cache: string, names: readonly Program[]): Promise<void> {
  await build(cache, 'setup-envtest', 'fetches the prebuilt ones');
  const series = (await kubernetesVersion()).replace(/^v(\d+\.\d+)\..*/, '$1.x');
  const tool = join(cache, 'setup-envtest');
  const folder = join(cache, 'envtest');
  const refused = (why: string): void => {
    console.error(
      `no prebuilt ${names.join(', ')}, so they are built; setup-envtest: ${why.trim().split('\n').at(-1)}`,
    );
  };
  // The index first: it is small, so a machine behind a silent firewall waits seconds and not minutes.
  const index = await execute(tool, ['list', series, '--bin-dir', folder], { timeout: 10_000 });
  if (index.code !== 0) return refused(index.stderr);
  const step = progress(`fetching ${names.join(', ')}`);
  const used = await execute(tool, ['use', series, '--bin-dir', folder, '-p', 'path'], { timeout: 600_000 });
  step.end(used.code === 0);
  if (used.code !== 0) return refused(used.stderr);
  for (const name of names) {
    const temporary = join(cache, `.${name}`);
    await copyFile(join(used.stdout.trim(), name), temporary);
    await rename(temporary, join(cache, name));
  }
}
