/**
 * Starts all processes that the benchmark measures: a control plane of the requested size, a small control plane, our
 * server for each of them, and the writers of changes. nginx and a bare node:http server return the bytes of our
 * responses.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from '../../hack/build.ts';
import { accountFolders } from './accounts.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { assertAlive, start } from '../../hack/cluster/processes.ts';
import { until } from '../../hack/cluster/until.ts';
import { changesOf, changesPerSecond, type Changes } from './changes.ts';
import { Connection, type Target } from './connection.ts';
import { namespacesFolder } from './my-namespaces.ts';
import { findNginx, startNginx, type Nginx } from './nginx.ts';
import { paths } from './paths.ts';
import { makeUsers, type Users } from './readers.ts';
import { problemOf, request } from './requests.ts';
import { put, type Size } from './seed.ts';
import { startSite, type Site } from './site.ts';

/**
 * Number of nodes of the small control plane. Costs that do not grow with the number of nodes are the same in both
 * control planes.
 */
export const few = 10;

export interface Stand {
  readonly site: Site;
  /** The small control plane and its server. */
  readonly small: Site;
  readonly users: Users;
  readonly nginx: Nginx;
  /** A bare node:http server. */
  readonly bare: { readonly plain: Target; readonly pids: readonly number[] };
  readonly changes: Changes;
  /**
   * Changes of the small control plane. The changes run only while its server is measured, because they take CPU time.
   */
  readonly smallChanges: Changes;
  close(): Promise<void>;
}

const bareServer = fileURLToPath(import.meta.resolve('./bare.ts'));

/** Returns the state folders of all control planes. */
export const foldersOf = (dir: string): string[] =>
  ['large', 'small', namespacesFolder, ...accountFolders].map((name) => join(dir, name));

export async function startStand(dir: string, size: Size): Promise<Stand> {
  const program = await findNginx();
  await build();
  const users = await makeUsers();
  const sites: Site[] = [];
  const close = async (): Promise<void> => {
    for (const site of sites) await site.close();
  };
  const open = async (folder: string, of: Size): Promise<Site> => {
    const site = await startSite(folder, of, users);
    sites.push(site);
    return site;
  };
  const [large = '', little = ''] = foldersOf(dir);
  try {
    const small = await open(little, { nodes: 0, pods: 0 });
    const { etcd } = await choosePorts(little, ['etcd'], true);
    await put(etcd, { nodes: few, pods: 0 }, small.ours.check);
    const smallChanges = await changesOf(small, few);
    const site = await open(large, size);
    const { ours } = site;
    const files = await filesOf(ours.plain, ours.tokens.plain[0], ours.check);
    const ports = await choosePorts(large, ['nginx', 'nginx-tls', 'bare'], false);
    const nginx = await startNginx({
      program,
      dir: large,
      ports: { plain: ports.nginx, tls: ports['nginx-tls'] },
      files,
    });
    const bare = await startBare(large, ports.bare, join(nginx.folder, 'node'));
    const changes = await changesOf(site, size.nodes);
    await changes.setRate(changesPerSecond);
    return {
      site,
      small: { ...small, size: { nodes: few, pods: 0 } },
      users,
      nginx,
      bare,
      changes,
      smallChanges,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startBare(dir: string, port: number, file: string): Promise<Stand['bare']> {
  const running = await start(dir, 'bare', [process.execPath, bareServer, String(port), file]);
  const plain = { host: '127.0.0.1', port };
  const responses = async (): Promise<boolean> => (await fetch(`http://${plain.host}:${port}/`)).ok;
  await until('the bare server responds', () => assertAlive(dir, [running]), responses);
  return { plain, pids: [running.pid] };
}

/** Returns the files for nginx, which contain the bytes of our responses with and without gzip. */
async function filesOf(
  target: Target,
  token: string | undefined,
  check: () => Promise<void>,
): Promise<Record<string, Buffer>> {
  const files: Record<string, Buffer> = {};
  const sources = {
    health: { path: paths.health },
    node: { path: paths.node(1) },
    page: { path: paths.page(1) },
    list: { path: paths.list },
    'list.gz': { path: paths.list, gzip: true },
  };
  const connection = new Connection(target);
  try {
    for (const [name, { path, ...expected }] of Object.entries(sources))
      await until(`${path} is served`, check, async () => {
        const response = await connection.send(Buffer.from(request(path, expected, { token }).text), true);
        const problem = problemOf(response, expected);
        if (problem !== undefined) throw new Error(problem);
        files[name] = response.body ?? Buffer.alloc(0);
        return true;
      });
  } finally {
    connection.close();
  }
  return files;
}
