/** The command line tool as a package for `npm install --global FILE`. npm adds the native code for the user's machine. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, nativePackages } from '../build.ts';
import type { Release } from './release.ts';
import { packageFiles } from './root-filesystem.ts';
import { tarGzip, text } from './tar.ts';

export async function cli({ root }: Release): Promise<Buffer> {
  const {
    dependencies,
    devDependencies: _,
    overrides: __,
    scripts: ___,
    ...manifest
  } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown> & {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const natives = Object.entries(dependencies).filter(([name]) => nativePackages.includes(name));
  const dist = await mkdtemp(join(tmpdir(), 'platform-cli-'));
  try {
    await build(dist);
    const files = packageFiles(dist).filter(
      ({ path }) => path !== 'package.json' && !path.startsWith('dist/node_modules/'),
    );
    const own = JSON.stringify({ ...manifest, dependencies: Object.fromEntries(natives) }, null, 2);
    // The name of the folder is that of npm pack.
    return await tarGzip([...files, text('package.json', own)].map((one) => ({ ...one, path: `package/${one.path}` })));
  } finally {
    await rm(dist, { recursive: true });
  }
}
