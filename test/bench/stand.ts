/**
 * Everything that is measured, started: a control plane of the size asked for and a small one, our server behind each, nginx and a
 * bare node:http server with the bytes that ours answers, and the changes.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { output } from '../../hack/cluster/exec.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { assertAlive, start } from '../../hack/cluster/processes.ts';
import { until } from '../../hack/cluster/until.ts';
import { changesOf, changesPerSecond, type Changes } from './changes.ts';
import { Connection, type Target } from './connection.ts';
import { findNginx, startNginx, type Nginx } from './nginx.ts';
import { paths } from './paths.ts';
import { makeUsers, type Users } from './readers.ts';
import { problemOf, request } from './requests.ts';
import { put, type Size } from './seed.ts';
import { startSite, type Site } from './site.ts';

/** Of the small control plane: what does not grow with the number of nodes costs the same there. */
export const few = 10;

export interface Stand {
  readonly site: Site;
  /** Nothing was in it at the start. */
  readonly small: Site;
  readonly users: Users;
  readonly nginx: Nginx;
  /** node:http, and nothing else. */
  readonly bare: { readonly plain: Target; readonly pids: readonly number[] };
  readonly changes: Changes;
  /** They come only while it is measured, for they take CPU that the others need. */
  readonly smallChanges: Changes;
  close(): Promise<void>;
}

const root = join(import.meta.dirname, '../..');
const bareServer = fileURLToPath(import.meta.resolve('./bare.ts'));

/** The state folders of both control planes. */
export const foldersOf = (dir: string): string[] => [join(dir, 'large'), join(dir, 'small')];

export async function startStand(dir: string, size: Size): Promise<Stand> {
  const program = await findNginx();
  await output(process.execPath, ['node_modules/.bin/tsc', '-p', 'tsconfig.build.json'], { cwd: root });
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
  const answers = async (): Promise<boolean> => (await fetch(`http://${plain.host}:${port}/`)).ok;
  await until('the bare server answers', () => assertAlive(dir, [running]), answers);
  return { plain, pids: [running.pid] };
}

/** For nginx: the bytes that our server answers; gzipped ones as well. */
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
      await until(`${path} is answered`, check, async () => {
        const answer = await connection.send(Buffer.from(request(path, expected, { token }).text), true);
        const problem = problemOf(answer, expected);
        if (problem !== undefined) throw new Error(problem);
        files[name] = answer.body ?? Buffer.alloc(0);
        return true;
      });
  } finally {
    connection.close();
  }
  return files;
}
