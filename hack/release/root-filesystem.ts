/**
 * The files of the image, in three layers: Debian's libraries, Node.js, and the server. A new version of the server
 * changes only the last layer, so that nodes pull 3 MB.
 *
 * Usage: node hack/release/root-filesystem.ts FOLDER [amd64|arm64]. Writes the files to a new folder, for the
 * Dockerfile.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { build, type ShippedPackage } from '../build.ts';
import { debianFiles } from './debian.ts';
import { file, tree } from './files.ts';
import { architectures, localArchitecture, type Architecture } from './oci.ts';
import { nodeArchitectures, platformModules } from './platforms.ts';
import { tar, text, type Entry } from './tar.ts';

const root = join(import.meta.dirname, '../..');

/** The user and the group of the process. The ids are the same as in distroless images. */
const accounts: readonly Entry[] = [
  text(
    'etc/passwd',
    'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
  ),
  text('etc/group', 'root:x:0:\nnonroot:x:65532:\n'),
  text('etc/nsswitch.conf', 'hosts: files dns\n'),
  { path: 'tmp', folder: true, mode: 0o1777 },
];

/**
 * Returns the files of the package platform-apiserver without native code: the server and what it reads at run time.
 */
export const packageFiles = (dist: string): Entry[] => [
  file('LICENSE', join(root, 'LICENSE')),
  file('package.json', join(root, 'package.json')),
  file('api/examples/platform.json', join(root, 'api/examples/platform.json')),
  ...tree('dist', dist),
];

interface RootFilesystem {
  /** Entries of each layer, lowest layer first. */
  readonly layers: readonly (readonly Entry[])[];
  /** The npm packages in the layers. */
  readonly packages: readonly ShippedPackage[];
}

export interface Parts {
  /** Name of the platform in Node.js, such as `linux-x64`. */
  readonly platform: string;
  /** The folder node_modules with Node.js and the native code for the platform. */
  readonly modules: string;
  /** Files of Debian packages. */
  readonly debian: readonly Entry[];
}

/** Downloads the components of the image, once per machine. */
export async function fetchParts(architecture: Architecture): Promise<Parts> {
  return {
    platform: `linux-${nodeArchitectures[architecture]}`,
    modules: await platformModules(architecture),
    debian: await debianFiles(architecture),
  };
}

/** Returns the layers below the server: Debian's libraries and Node.js. */
export function baseLayers({ platform, modules, debian }: Parts): Entry[][] {
  const node = join(modules, `node-${platform}`);
  return [
    [...accounts, ...debian],
    [
      file('usr/local/bin/node', join(node, 'bin/node')),
      file('usr/local/share/doc/node/LICENSE', join(node, 'LICENSE')),
    ],
  ];
}

export async function rootFilesystem(architecture: Architecture): Promise<RootFilesystem> {
  const parts = await fetchParts(architecture);
  const dist = await mkdtemp(join(tmpdir(), 'platform-dist-'));
  try {
    const packages = await build(dist, { name: parts.platform, modules: parts.modules });
    const server = packageFiles(dist).map((entry) => ({ ...entry, path: `app/${entry.path}` }));
    return { layers: [...baseLayers(parts), server], packages };
  } finally {
    await rm(dist, { recursive: true });
  }
}

async function write(folder: string, architecture: Architecture): Promise<void> {
  const { layers } = await rootFilesystem(architecture);
  await mkdir(folder);
  const child = spawn('tar', ['--extract', '--directory', folder], { stdio: ['pipe', 'inherit', 'inherit'] });
  const closed = once(child, 'close');
  await pipeline(Readable.from(await tar(layers.flat())), child.stdin);
  const [code] = (await closed) as [number | null];
  if (code !== 0) throw new Error(`tar failed with exit code ${code}`);
}

if (import.meta.main) {
  const [folder, architecture = localArchitecture] = process.argv.slice(2);
  const known = architectures.find((one) => one === architecture);
  if (folder === undefined || known === undefined) {
    console.error(`usage: node hack/release/root-filesystem.ts FOLDER [${architectures.join('|')}]`);
    process.exitCode = 2;
  } else await write(folder, known);
}
