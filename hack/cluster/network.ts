/**
 * Every control plane uses a block 10.x.0.0/16 for its Services, nodes and pods. One address of the block belongs to
 * this machine: kube-apiserver reaches aggregated servers there, because EndpointSlices reject loopback addresses. If
 * run by root, this module makes the rest of the block unreachable. Otherwise packets to a ClusterIP would leave this
 * machine by the default route, because there is no kube-proxy.
 */
import { networkInterfaces, userInfo } from 'node:os';
import { chooseOnce, seed } from './chosen.ts';
import { execute, output } from './exec.ts';

export interface Block {
  /** Whole block, such as 10.140.0.0/16. */
  readonly cidr: string;
  readonly services: string;
  /** ClusterIP of the Service default/kubernetes. */
  readonly firstService: string;
  readonly pods: string;
  /** Address of aggregated servers on this machine. */
  readonly address: string;
  /** Returns the address of a node, by its index from 0. */
  node(index: number): string;
}

const first = 100;
const blocks = 150;

export async function addressBlock(folder: string): Promise<Block> {
  const second = await chooseOnce(folder, 'block', async (before) => {
    if (before !== undefined) return before;
    const start = seed(folder, blocks);
    for (let step = 0; step < blocks; step++) {
      const candidate = first + ((start + step) % blocks);
      if (await isUnused(candidate)) return candidate;
    }
    throw new Error('every block from 10.100.0.0/16 to 10.249.0.0/16 is in use');
  });
  const base = `10.${second}`;
  return {
    cidr: `${base}.0.0/16`,
    services: `${base}.0.0/20`,
    firstService: `${base}.0.1`,
    pods: `${base}.128.0/18`,
    address: `${base}.255.1`,
    node: (index) => `${base}.${64 + Math.floor(index / 250)}.${1 + (index % 250)}`,
  };
}

async function isUnused(second: number): Promise<boolean> {
  const { code, stdout } = await execute('ip', ['-4', 'route', 'show', 'root', `10.${second}.0.0/16`]);
  return (code !== 0 || stdout.trim() === '') && !ownAddresses().some((address) => address.startsWith(`10.${second}.`));
}

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));

const isRoot = (): boolean => userInfo().uid === 0;

/** Keeps the block's packets on this machine and assigns the block's address to it. Does nothing unless run by root. */
export async function openBlock({ cidr, address }: Block): Promise<void> {
  if (!isRoot()) return;
  await output('ip', ['route', 'replace', 'unreachable', cidr]);
  await output('ip', ['address', 'replace', `${address}/32`, 'dev', 'lo']);
}

export async function closeBlock({ cidr, address }: Block): Promise<void> {
  if (!isRoot()) return;
  // Failures are ignored, because the route or the address may already be removed.
  await execute('ip', ['route', 'del', 'unreachable', cidr]);
  await execute('ip', ['address', 'del', `${address}/32`, 'dev', 'lo']);
}

/** Throws an error with the command to run if this machine does not have the block's address. */
export function assertAddress({ address }: Block): void {
  if (!ownAddresses().includes(address))
    throw new Error(
      `address ${address} is missing: kube-apiserver needs an address other than loopback to reach an aggregated server. Add it once as root:\n  sudo ip address replace ${address}/32 dev lo`,
    );
}
