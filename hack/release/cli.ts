/**
 * The command line tool as a package for `npm install --global FILE`. npm adds the native code for the user's machine.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, nativePackages } from '../build.ts';
import type { Release } from './release.ts';
import { packageFiles } from './root-filesystem.ts';
import { tarGzip, text } from './tar.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Returns the manifest of the package. The bundle contains all dependencies without native code. */
export function cliManifest(manifest: Manifest): Manifest {
  const { name, version, description, license, type, engines, bin } = manifest;
  const natives = Object.entries(manifest.dependencies).filter(([dependency]) => nativePackages.includes(dependency));
  return { name, version, description, license, type, engines, bin, dependencies: Object.fromEntries(natives) };
}

export async function cli({ root }: Release): Promise<Buffer> {
  const manifest = cliManifest(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest);
  const dist = await mkdtemp(join(tmpdir(), 'platform-cli-'));
  try {
    await build(dist);
    const files = packageFiles(dist).filter(
      ({ path }) => path !== 'package.json' && !path.startsWith('dist/node_modules/'),
    );
    const own = JSON.stringify(manifest, null, 2);
    // npm pack uses the same folder name.
    return await tarGzip([...files, text('package.json', own)].map((one) => ({ ...one, path: `package/${one.path}` })));
  } finally {
    await rm(dist, { recursive: true });
  }
}
