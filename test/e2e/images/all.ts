/** Images of the cluster: the release image, and images with programs of this machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { programs } from '../../../hack/cluster/programs.ts';
import { file, tree } from '../../../hack/release/files.ts';
import { imageConfig } from '../../../hack/release/image-config.ts';
import { localArchitecture, type Image, type ImageConfig } from '../../../hack/release/oci.ts';
import { baseLayers, fetchParts, rootFilesystem } from '../../../hack/release/root-filesystem.ts';
import type { Entry } from '../../../hack/release/tar.ts';
import { tool } from '../machine/packages.ts';
import { program } from './machine-files.ts';
import type { PreviousVersion } from './previous.ts';

export const tag = 'e2e';
export const names = {
  server: 'e2e.local/platform-apiserver',
  client: 'e2e.local/client',
  coredns: 'e2e.local/coredns',
} as const;

const searchPath = 'PATH=/usr/local/bin:/usr/bin:/bin';

/** Returns an image for the architecture of this machine. */
export const localImage = (name: string, layers: readonly (readonly Entry[])[], config: ImageConfig): Image => ({
  name,
  platforms: { [localArchitecture]: layers },
  config,
});

/** Returns the image of a release (make release). */
export async function serverImage(): Promise<Image> {
  const { layers } = await rootFilesystem(localArchitecture);
  return localImage(`${names.server}:${tag}`, layers, imageConfig());
}

/** Returns the image of the previous version, built like its Dockerfile does, on the base of the current image. */
export async function previousServerImage({ folder, tag: previousTag }: PreviousVersion): Promise<Image> {
  const app = [
    ...['LICENSE', 'package.json'].map((name) => file(`app/${name}`, join(folder, name))),
    ...['api/examples', 'node_modules', 'dist'].flatMap((name) => tree(`app/${name}`, join(folder, name))),
  ];
  const config = imageConfig(readFileSync(join(folder, 'Dockerfile'), 'utf8'));
  const base = baseLayers(await fetchParts(localArchitecture));
  return localImage(`${names.server}:${previousTag}`, [...base, app], config);
}

/** Returns the files of a shell with these commands, curl, and a folder for temporary files. */
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
  return localImage(`${names.client}:${tag}`, [await shell('kill', 'nc', 'usleep')], {
    Env: [searchPath],
    Cmd: ['sleep', '2147483647'],
  });
}

export async function corednsImage(): Promise<Image> {
  const { coredns } = await programs(['coredns']);
  return localImage(`${names.coredns}:${tag}`, [await program('usr/bin/coredns', coredns)], {
    Env: [searchPath],
    Entrypoint: ['coredns'],
  });
}
