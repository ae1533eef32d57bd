import { chooseOnce, freePort, isFree, seed } from './chosen.ts';

/**
 * Returns a port for each name, the same at every start. Ports are below the range that the kernel uses for outgoing
 * connections.
 */
export async function choosePorts<Name extends string>(
  folder: string,
  names: readonly Name[],
  inUse: boolean,
): Promise<Record<Name, number>> {
  const ports = new Map<Name, number>();
  for (const name of names) {
    const port = await chooseOnce(folder, name, async (before) =>
      before !== undefined && (inUse || (await isFree(before)))
        ? before
        : freePort(10_000 + seed(folder, 18_000), '127.0.0.1', [...ports.values()]),
    );
    ports.set(name, port);
  }
  return Object.fromEntries(ports) as Record<Name, number>;
}
