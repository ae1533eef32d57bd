/** Network of the node, and a second machine outside the cluster that sends requests. */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Block } from '../../../hack/cluster/network.ts';
import { output } from '../../../hack/cluster/exec.ts';
import { tool } from './packages.ts';

const outside = 'outside';

/** Prefix of a command to run on the machine outside. */
export const fromOutside = (): readonly string[] => [tool('nsenter'), `--net=/run/netns/${outside}`, '--'];

export const nodeAddress = (block: Block): string => block.node(0);

const ip = (...args: readonly string[]): Promise<string> => output(tool('ip'), args);

export async function makeNetwork(block: Block): Promise<void> {
  mkdirSync('/run/netns', { recursive: true });
  await ip('netns', 'add', outside);
  await ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', outside);
  await ip('address', 'add', `${nodeAddress(block)}/24`, 'dev', 'eth0');
  await ip('-n', outside, 'address', 'add', `${block.node(1)}/24`, 'dev', 'eth0');
  for (const where of [[], ['-n', outside]])
    for (const device of ['lo', 'eth0']) await ip(...where, 'link', 'set', device, 'up');
  // The node has no default route: this one leads packets for a ClusterIP to kube-proxy's rules.
  await ip('route', 'add', block.services, 'dev', 'eth0', 'src', nodeAddress(block));
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}
