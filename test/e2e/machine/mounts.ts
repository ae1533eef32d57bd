/** Folders of the machine to which a node writes, covered within the mount namespace. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { tool } from './packages.ts';

/** Settings that the kubelet applies to the whole machine at its start. */
const tunables = [
  'kernel/keys/root_maxbytes',
  'kernel/keys/root_maxkeys',
  'kernel/panic',
  'kernel/panic_on_oops',
  'vm/overcommit_memory',
  'vm/panic_on_oom',
];

const mount = (...args: readonly string[]): Promise<string> => output(tool('mount'), args);

function make(path: string): string {
  mkdirSync(path);
  return path;
}

/** Covers the folders with large or temporary files. */
export const inMemory = (folder: string, name: string): string => join(folder, 'memory', name);

export async function coverMachine(folder: string): Promise<void> {
  // Mounts in volumes must propagate to running containers.
  await mount('--make-rshared', '/');
  await mount('-t', 'tmpfs', 'tmpfs', make(join(folder, 'memory')));
  await mount('-t', 'tmpfs', 'tmpfs', '/run');
  await mount('--bind', make(join(folder, 'var-log')), '/var/log');
  const [upper, work] = ['var-lib', 'var-lib-work'].map((name) => make(inMemory(folder, name)));
  const layers = `lowerdir=/var/lib,upperdir=${upper},workdir=${work}`;
  await mount('-t', 'overlay', 'overlay', '-o', layers, '/var/lib');
  for (const name of tunables) {
    const [real, copy] = [join('/proc/sys', name), inMemory(folder, name.replaceAll('/', '.'))];
    writeFileSync(copy, readFileSync(real));
    await mount('--bind', copy, real);
  }
}
