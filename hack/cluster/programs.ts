/**
 * Provides the programs of a cluster. A program comes from the first source that has it: the folder KUBEBUILDER_ASSETS;
 * the prebuilt set that setup-envtest fetches (only etcd, kube-apiserver and kubectl); a build of the Go modules pinned
 * in programs/go.mod, or for another version of Kubernetes in kubernetes/<version>/go.mod. Fetched and built programs are
 * stored in the user's cache folder, so each program is fetched or built once per machine.
 */
import { access, constants, copyFile, mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from './exec.ts';
import { cacheFolder, goBuildFlags, kubernetesVersion, modules } from './go-modules.ts';
import { kubernetesModules } from './kubernetes-version.ts';
import { withLock } from './lock.ts';
import { progress } from './progress.ts';

/** Programs and their Go packages. All but coredns are listed as tools in the go.mod. */
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

/**
 * Returns the folder of the go.mod from which a program is built. kubectl always has the pinned version, because kubectl
 * 1.31 sometimes exits before it has printed all output of a command that it executes in a container.
 */
const modulesOf = (name: Program): string =>
  packages[name].startsWith('k8s.io/kubernetes/') && name !== 'kubectl' ? kubernetesModules() : modules;

/** Returns the absolute paths of programs. First fetches or builds missing programs. */
export async function programs<Name extends Program>(names: readonly Name[]): Promise<Record<Name, string>> {
  const found = new Map<Name, string>();
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (assets !== undefined && assets !== '') await add(found, names, assets);
  const missing = (wanted: readonly Name[]): Name[] => wanted.filter((name) => !found.has(name));
  for (const [folder, wanted] of Map.groupBy(missing(names), modulesOf)) {
    const cache = await cacheFolder(folder);
    await add(found, wanted, cache);
    if (missing(wanted).length > 0)
      await withLock(
        cache,
        () => obtain(folder, cache, missing(wanted)),
        () => console.error('waiting for another process that is building the programs'),
      );
    await add(found, wanted, cache);
  }
  return Object.fromEntries(found) as Record<Name, string>;
}

/** Links programs into `folder`. Existing links in the folder stay unchanged. */
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

/**
 * Fetches or builds the programs of the go.mod in `folder` that the cache lacks. The caller must hold the lock of the
 * cache.
 */
async function obtain(folder: string, cache: string, names: readonly Program[]): Promise<void> {
  await mkdir(cache, { recursive: true });
  const missing = async (): Promise<Program[]> => {
    const rest: Program[] = [];
    for (const name of names) if (!(await executable(join(cache, name)))) rest.push(name);
    return rest;
  };
  const fetchable = (await missing()).filter((name) => prebuilt.includes(name));
  if (fetchable.length > 0) await fetchPrebuilt(folder, cache, fetchable);
  const rest = await missing();
  for (const [index, name] of rest.entries()) await build(cache, name, `program ${index + 1} of ${rest.length}`);
}

async function build(cache: string, name: Program, count: string): Promise<void> {
  const step = progress(`building ${name} (${count})`);
  const path = join(cache, `.${name}`);
  const folder = modulesOf(name);
  const { code, stderr } = await execute('go', ['build', ...(await goBuildFlags(folder)), '-o', path, packages[name]], {
    cwd: folder,
    env: { CGO_ENABLED: '0' },
    onStderr: (text) => step.detail(text.trim().split('\n').at(-1) ?? ''),
  });
  step.end(code === 0);
  if (code !== 0) throw new Error(`go build ${packages[name]} failed:\n${stderr}`);
  await rename(path, join(cache, name));
}

/** Fetches the official binaries of the version that `folder` pins. Prints the reason if they cannot be fetched. */
async function fetchPrebuilt(modulesFolder: string, cache: string, names: readonly Program[]): Promise<void> {
  await build(cache, 'setup-envtest', 'fetches prebuilt programs');
  const series = (await kubernetesVersion(modulesFolder)).replace(/^v(\d+\.\d+)\..*/, '$1.x');
  const tool = join(cache, 'setup-envtest');
  const folder = join(cache, 'envtest');
  const reportUnavailable = (reason: string): void => {
    console.error(
      `cannot fetch prebuilt ${names.join(', ')}; building from source (setup-envtest: ${reason.trim().split('\n').at(-1)})`,
    );
  };
  // The index is small and fetched first. If a firewall drops packets, this request fails within seconds instead of
  // minutes.
  const index = await execute(tool, ['list', series, '--bin-dir', folder], { timeout: 10_000 });
  if (index.code !== 0) return reportUnavailable(index.stderr);
  const step = progress(`fetching ${names.join(', ')}`);
  const used = await execute(tool, ['use', series, '--bin-dir', folder, '-p', 'path'], { timeout: 600_000 });
  step.end(used.code === 0);
  if (used.code !== 0) return reportUnavailable(used.stderr);
  for (const name of names) {
    const temporary = join(cache, `.${name}`);
    await copyFile(join(used.stdout.trim(), name), temporary);
    await rename(temporary, join(cache, name));
  }
}
