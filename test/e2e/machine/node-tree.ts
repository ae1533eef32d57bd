/** A process tree that can be a node: it has the packages, namespaces and control group that a kubelet needs. */
import { userInfo } from 'node:os';
import { programs } from '../../../hack/cluster/programs.ts';
import { localArchitecture } from '../../../hack/release/oci.ts';
import { fetchParts } from '../../../hack/release/root-filesystem.ts';
import { needed } from '../node/programs.ts';
import { makeControlGroup } from './cgroups.ts';
import { startTree } from './namespaces.ts';
import { installPackages } from './packages.ts';

export interface NodeTree {
  /** Settles when all processes have ended and the control group is removed. */
  readonly ended: Promise<Ended>;
  /** Kills all processes. */
  stop(reason: string): void;
}

interface Ended {
  /** Null if the tree was killed. */
  readonly code: number | null;
  /** Reason of the first `stop`, if there was one. */
  readonly stopped?: string;
}

/** Throws with the reason if this machine cannot be a node. */
export function assertCanBeNode(command: string): void {
  if (process.platform !== 'linux') throw new Error('a node requires Linux, but this machine runs another system');
  if (userInfo().uid !== 0) throw new Error(`a node needs root: sudo ${command}`);
}

/**
 * Runs a script with the arguments in its own namespaces, for at most `timeout` milliseconds. The first argument is the
 * name of the control group.
 */
export async function startNodeTree(
  script: string,
  args: readonly [string, ...string[]],
  timeout: number,
): Promise<NodeTree> {
  await installPackages();
  await programs(needed);
  // The namespaces have no network.
  await fetchParts(localArchitecture);
  const removeControlGroup = makeControlGroup(args[0]);
  let stopped: string | undefined;
  const tree = await startTree(script, args).catch(async (error: unknown) => {
    await removeControlGroup();
    throw error;
  });
  const stop = (reason: string): void => {
    stopped ??= reason;
    tree.kill();
  };
  const timer = setTimeout(() => stop(`timed out after ${timeout / 60_000} minutes`), timeout);
  const end = async (): Promise<Ended> => {
    const code = await tree.ended;
    clearTimeout(timer);
    await removeControlGroup();
    return stopped === undefined ? { code } : { code, stopped };
  };
  return { ended: end(), stop };
}
