/** Images of the cluster, built from this machine's programs and this work tree. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { execute } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { nodeFlags } from '../../../hack/run/server.ts';
import { tool } from '../machine/packages.ts';
import type { Image } from './image.ts';
import { file, program, tree } from './machine-files.ts';
import type { Entry } from './tar.ts';

const root = join(import.meta.dirname, '../../..');

export const tag = 'e2e';
export const names = {
  server: 'e2e.local/platform-apiserver',
  client: 'e2e.local/client',
  coredns: 'e2e.local/coredns',
} as const;

const text = (path: string, content: string): Entry => ({ path, content: Buffer.from(content) });
const searchPath = 'PATH=/usr/local/bin:/usr/bin:/bin';

/** The server laid out as in the Dockerfile, compiled from the current sources to `dist`. */
export async function serverImage(dist: string): Promise<Image> {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const flags = ['-p', 'tsconfig.build.json', '--outDir', dist];
  const compiled = await execute(process.execPath, [tsc, ...flags], { cwd: root, timeout: 120_000 });
  if (compiled.code !== 0) throw new Error(`the server cannot be compiled:\n${compiled.stdout}${compiled.stderr}`);
  const modules = productionModules();
  const addons = modules
    .filter(({ path }) => path.endsWith('.node'))
    .map(({ path }) => join(root, relative('app', path)));
  return {
    name: `${names.server}:${tag}`,
    layers: [
      [
        text(
          'etc/passwd',
          'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
        ),
        text('etc/group', 'root:x:0:\nnonroot:x:65532:\n'),
        text('etc/nsswitch.conf', 'hosts: files dns\n'),
        { path: 'tmp', folder: true, mode: 0o1777 },
        ...(await program('usr/local/bin/node', realpathSync(process.execPath), addons)),
      ],
      modules,
      [
        file('app/LICENSE', join(root, 'LICENSE')),
        file('app/package.json', join(root, 'package.json')),
        file('app/api/examples/platform.json', join(root, 'api/examples/platform.json')),
        ...tree('app/dist', dist, () => true),
      ],
    ],
    config: {
      User: '65532:65532',
      WorkingDir: '/app',
      Env: [searchPath, 'NODE_ENV=production'],
      Entrypoint: ['node', ...nodeFlags, '/app/dist/main.js'],
    },
  };
}

/** Packages within a package have their own entry in the lock file. */
const wanted = (path: string): boolean => !/\/node_modules$|\.d\.[cm]?ts$|\.map$/.test(path);

/** Returns what `npm ci --omit=dev` would install, selected from node_modules by the lock file. */
function productionModules(): Entry[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([folder, { dev }]) => folder !== '' && dev !== true && existsSync(join(root, folder)))
    .flatMap(([folder]) => tree(join('app', folder), join(root, folder), wanted));
}

/** Returns a shell with these commands, curl, and a folder for temporary files. */
export async function shell(...commands: readonly string[]): Promise<Entry[]> {
  return [
    ...(await program('bin/busybox', tool('busybox'))),
    ...['sh', 'cat', 'sleep', 'tar', ...commands].map((name) => ({ path: `bin/${name}`, link: 'busybox' })),
    ...(await program('usr/bin/curl', tool('curl'))),
    { path: 'tmp', folder: true, mode: 0o1777 },
  ];
}

/**
 * Returns the image with a shell and curl. Its container sleeps by default, and therefore also serves as the pause
 * container of every pod.
 */
export async function clientImage(): Promise<Image> {
  return {
    name: `${names.client}:${tag}`,
    layers: [await shell('kill', 'nc', 'usleep')],
    config: { Env: [searchPath], Cmd: ['sleep', '2147483647'] },
  };
}

export async function corednsImage(): Promise<Image> {
  const { coredns } = await programs(['coredns']);
  return {
    name: `${names.coredns}:${tag}`,
    layers: [await program('usr/bin/coredns', coredns)],
    config: { Env: [searchPath], Entrypoint: ['coredns'] },
  };
}
