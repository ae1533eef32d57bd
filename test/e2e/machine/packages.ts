/** Packages that a node needs in addition to Kubernetes' programs, from Debian's archive. */
import { join } from 'node:path';
import { findProgram, installMissing } from '../../../hack/cluster/apt.ts';

/** Each package with a program. The package is needed only if the program is missing. */
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

/** Returns the path of a program; folders of system programs are not in every PATH. */
export function tool(name: Tool | 'ctr' | 'nsenter' | 'setpriv' | 'mount'): string {
  const path = findProgram(name, pluginFolders);
  if (path === undefined) throw new Error(`${name} is not installed`);
  return path;
}

/** Folder with the network plugins for the container runtime. */
export const pluginFolder = (): string => join(tool('ptp'), '..');

/** Installs missing packages. Throws without apt-get. */
export const installPackages = (): Promise<void> => installMissing(packages, pluginFolders);
