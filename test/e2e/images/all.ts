/** Images of the cluster, built from this machine's programs and this work tree. */
import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from '../../../hack/build.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { nodeFlags } from '../../../hack/run/server.ts';
import { tool } from '../machine/packages.ts';
import type { Image } from './image.ts';
import { file, program, tree } from './machine-files.ts';
import type { TarEntry } from '../../../src/runtime/tar.ts';

const root = join(import.meta.dirname, '../../..');

export const tag = 'e2e';
export const names = {
  server: 'e2e.local/platform-apiserver',
  client: 'e2e.local/client',
  coredns: 'e2e.local/coredns',
} as const;

const text = (path: string, content: string): TarEntry => ({ path, content: Buffer.from(content) });
const searchPath = 'PATH=/usr/local/bin:/usr/bin:/bin';

/** The server laid out as in the Dockerfile, built from the current sources in `dist`. */
export async function serverImage(dist: string): Promise<Image> {
  await build(dist);
  const files = tree('app/dist', dist, () => true);
  const addons = files
    .filter(({ path }) => path.endsWith('.node'))
    .map(({ path }) => join(dist, relative('app/dist', path)));
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
      [
        file('app/LICENSE', join(root, 'LICENSE')),
        file('app/package.json', join(root, 'package.json')),
        file('app/api/examples/platform.json', join(root, 'api/examples/platform.json')),
        ...files,
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

/** Returns a shell with these commands, curl, and a folder for temporary files. */
export async function shell(...commands: readonly string[]): Promise<TarEntry[]> {
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
