/**
 * Go modules of the cluster's programs, pinned in programs/go.mod, and the cache folder for programs that are built
 * from them.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { output } from './exec.ts';
import { userCache } from './user-cache.ts';

/** Folder in which `go` runs for these modules. */
export const modules = join(import.meta.dirname, 'programs');

/** Returns the version of a module that the go.mod in `folder` pins. */
export async function moduleVersion(module: string, folder = modules): Promise<string> {
  const file = join(folder, 'go.mod');
  const lines = (await readFile(file, 'utf8')).split('\n');
  const version = lines.find((line) => line.startsWith(`\t${module} v`))?.split(' ')[1];
  if (version === undefined) throw new Error(`${file} does not require ${module}`);
  return version;
}

/** Returns the version of Kubernetes that the go.mod in `folder` pins, such as `v1.36.3`. */
export const kubernetesVersion = (folder = modules): Promise<string> => moduleVersion('k8s.io/kubernetes', folder);

/**
 * Returns the build flags of every program. The flags set the version of Kubernetes in the binary, as Kubernetes' own
 * build does. Without them, kube-apiserver reports v0.0.0.
 */
export async function goBuildFlags(folder = modules): Promise<string[]> {
  const gitVersion = await kubernetesVersion(folder);
  const [gitMajor, gitMinor] = gitVersion.slice(1).split('.');
  const variables = Object.entries({ gitVersion, gitMajor, gitMinor, gitTreeState: 'clean' });
  const links = variables.map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`);
  return ['-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', ['-s', '-w', ...links].join(' ')];
}

/**
 * Returns a folder in the user's cache for the programs of a go.mod. The name of the folder depends on everything that
 * affects the built programs.
 */
export async function cacheFolder(folder = modules): Promise<string> {
  const go = await output('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], { cwd: folder }).catch((error: unknown) => {
    throw new Error('cannot run go, which builds the programs of the cluster; install Go (https://go.dev/dl)', {
      cause: error,
    });
  });
  const hash = createHash('sha256')
    .update(go)
    .update((await goBuildFlags(folder)).join(' '));
  const sources = folder === modules ? ['coredns/main.go'] : [];
  for (const file of ['go.mod', 'go.sum', ...sources]) hash.update(await readFile(join(folder, file)));
  return join(userCache, hash.digest('hex').slice(0, 16));
}

/** Returns the folder of a downloaded module, for files that are not code. The go.mod in `cwd` pins its version, unless `module` has one. */
export async function moduleFolder(module: string, cwd = modules): Promise<string> {
  const text = await output('go', ['mod', 'download', '-json', module], { cwd });
  return (JSON.parse(text) as { Dir: string }).Dir;
}

/**
 * Returns a file with kwok's stages for nodes and pods. Only the module's folder contains the stages, not the kwok that
 * is built from the module.
 */
export async function kwokStages(): Promise<string> {
  const cache = await cacheFolder();
  const path = join(cache, 'kwok.yaml');
  if (existsSync(path)) return path;
  const folder = join(await moduleFolder('sigs.k8s.io/kwok'), 'kustomize/stage');
  const files = ['node/fast/node-initialize', 'pod/fast/pod-ready', 'pod/fast/pod-complete', 'pod/fast/pod-delete'];
  const stages = await Promise.all(files.map((file) => readFile(join(folder, `${file}.yaml`), 'utf8')));
  await mkdir(cache, { recursive: true });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, stages.join('\n---\n'));
  await rename(temporary, path);
  return path;
}
