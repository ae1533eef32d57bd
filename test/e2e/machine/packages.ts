/** What a node needs beside Kubernetes' own programs, from Debian's archive. */
import { join } from 'node:path';
import { findProgram, installMissing } from '../../../hack/cluster/apt.ts';

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
  const path = findProgram(name, pluginFolders);
  if (path === undefined) throw new Error(`${name} is not installed`);
  return path;
}

/** The folder with the network plugins that the container runtime calls. */
export const pluginFolder = (): string => join(tool('ptp'), '..');

/** Installs what is missing. Throws where there is no apt-get. */
export const installPackages = (): Promise<void> => installMissing(packages, pluginFolders);
