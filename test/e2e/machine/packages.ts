/** What a node needs beside Kubernetes' own programs, from Debian's archive. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execute } from '../../../hack/cluster/exec.ts';
import { progress } from '../../../hack/cluster/progress.ts';

/** Each package and the program by which it is known to be there, because another package may have brought it. */
const packages = {
  containerd: 'containerd',
  runc: 'runc',
  'containernetworking-plugins': 'ptp',
  iptables: 'iptables',
  iproute2: 'ip',
  'busybox-static': 'busybox',
  curl: 'curl',
  'util-linux': 'unshare',
  bsdutils: 'script',
} as const;

type Tool = (typeof packages)[keyof typeof packages];

const pluginFolders = ['/usr/lib/cni', '/opt/cni/bin'];

/** The path of a program; the folders of system programs are not in everybody's PATH. */
export function tool(name: Tool | 'ctr' | 'nsenter' | 'setpriv' | 'mount'): string {
  const path = find(name);
  if (path === undefined) throw new Error(`${name} is not installed`);
  return path;
}

/** The folder with the network plugins that the container runtime calls. */
export const pluginFolder = (): string => join(tool('ptp'), '..');

function find(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', ...pluginFolders];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Installs what is missing. Throws where there is no apt-get. */
export async function installPackages(): Promise<void> {
  const missing = Object.entries(packages).flatMap(([name, program]) => (find(program) === undefined ? [name] : []));
  if (missing.length === 0) return;
  if (find('apt-get') === undefined)
    throw new Error(
      `only on Debian and its like they are installed by themselves; please install: ${missing.join(' ')}`,
    );
  await apt('update');
  await apt('install', '--yes', '--no-install-recommends', ...missing);
}

async function apt(...args: readonly string[]): Promise<void> {
  const step = progress(`apt-get ${args.join(' ')}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const { code, stdout, stderr } = await execute('apt-get', ['--quiet', ...args], { env, timeout: 600_000 });
  step.end(code === 0);
  if (code !== 0) throw new Error(`apt-get ${args.join(' ')} failed:\n${stdout}${stderr}`);
}
