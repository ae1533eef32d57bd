/** Control group of the node, below which the kubelet creates a control group for each pod. */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Hierarchy {
  readonly folder: string;
  readonly version: 1 | 2;
}

function hierarchies(): Hierarchy[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => {
      const [mount = '', type = ''] = line.split(' - ');
      return { folder: mount.split(' ')[4] ?? '', type: type.split(' ')[0] };
    });
  return mounts
    .filter(({ folder, type }) => /^\/sys\/fs\/cgroup(\/|$)/.test(folder) && (type === 'cgroup' || type === 'cgroup2'))
    .map(({ folder, type }) => ({ folder, version: type === 'cgroup' ? 1 : 2 }));
}

/** Creates the group in every hierarchy. Returns a function that removes it after its processes have ended. */
export function makeControlGroup(name: string): () => Promise<void> {
  const all = hierarchies();
  if (all.length === 0) throw new Error('no control groups are mounted');
  const undo = all.map((hierarchy) => make(hierarchy, name));
  return async () => {
    for (const { folder } of all) await remove(join(folder, name));
    for (const step of undo) step();
  };
}

function make({ folder, version }: Hierarchy, name: string): () => void {
  const group = join(folder, name);
  if (version === 2) {
    const added = delegate(folder);
    mkdirSync(group);
    return () => {
      for (const controller of added) writeFileSync(join(folder, 'cgroup.subtree_control'), `-${controller}`);
    };
  }
  mkdirSync(group);
  // A new group has no processors and no memory. Nothing can run in the group until both are assigned.
  for (const file of readdirSync(folder).filter((entry) => ['cpuset.cpus', 'cpuset.mems'].includes(entry)))
    writeFileSync(join(group, file), readFileSync(join(folder, file)));
  return () => undefined;
}

/** Enables the controllers that the kubelet requires below `folder`. Returns the newly enabled controllers. */
function delegate(folder: string): string[] {
  const words = (file: string): string[] => readFileSync(join(folder, file), 'utf8').trim().split(/\s+/);
  const [available, enabled] = [words('cgroup.controllers'), words('cgroup.subtree_control')];
  const added = ['cpuset', 'cpu', 'memory', 'hugetlb', 'pids'].filter(
    (controller) => available.includes(controller) && !enabled.includes(controller),
  );
  for (const controller of added) writeFileSync(join(folder, 'cgroup.subtree_control'), `+${controller}`);
  return added;
}

/** Removes groups, innermost first. The kernel takes a moment to release a killed process. */
async function remove(group: string): Promise<void> {
  for (const end = Date.now() + 10_000; ; await sleep(20)) {
    try {
      for (const entry of readdirSync(group, { withFileTypes: true }))
        if (entry.isDirectory()) await remove(join(group, entry.name));
      rmdirSync(group);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      if (Date.now() > end) throw error;
    }
  }
}
