/**
 * Bundles src to dist. Apart from the bundle, `node dist/main.js` needs only package.json and the packages with native code,
 * which are copied to dist/node_modules. Loading one file instead of 700 halves the start time. The build checks no types: make
 * verify does.
 *
 * Usage: node hack/build.ts
 */
import { build as bundle, type BuildOptions } from 'esbuild';
import { cp, readFile, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
/** Packages that load native code by path. `node-addon-api`, on which bcrypt depends, is needed only to compile it. */
const nativePackages = ['bcrypt', 'node-gyp-build', '@node-rs/argon2'];

const shared = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
} satisfies BuildOptions;

/** Writes the server to a folder. Files of earlier builds are removed last, because a server may be about to load them. */
export async function build(folder = join(root, 'dist')): Promise<void> {
  const server = await bundle({
    ...shared,
    entryPoints: ['src/main.ts'],
    outdir: folder,
    splitting: true,
    platform: 'node',
    target: 'node24',
    external: nativePackages,
    metafile: true,
    // CommonJS packages call `require` for modules of Node.js.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  // src/docs/explorer/modules.ts, which is in the bundle above, reads this file from the folder `browser` beside that
  // bundle.
  await bundle({
    ...shared,
    entryPoints: ['src/docs/explorer/browser/main.ts'],
    outfile: join(folder, 'browser/main.js'),
  });
  for (const name of await installed()) {
    const skipped = new RegExp(`node_modules/${name}/node_modules|\\.(?:d\\.ts|md)$`);
    await cp(join(root, 'node_modules', name), join(folder, 'node_modules', name), {
      recursive: true,
      filter: (source) => !skipped.test(source),
    });
  }
  const written = new Set(Object.keys(server.metafile.outputs).map((file) => join(root, file)));
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const file = join(folder, entry.name);
    if (entry.isFile() && /\.js(?:\.map)?$/.test(file) && !written.has(file)) await rm(file);
  }
}

/** Returns the native packages, and the package with the binary of this platform. */
async function installed(): Promise<string[]> {
  const text = await readFile(join(root, 'node_modules/@node-rs/argon2/package.json'), 'utf8');
  const { optionalDependencies } = JSON.parse(text) as { optionalDependencies: Record<string, string> };
  const scope = await readdir(join(root, 'node_modules/@node-rs'));
  return [
    ...nativePackages,
    ...Object.keys(optionalDependencies).filter((name) => scope.includes(name.split('/')[1] ?? '')),
  ];
}

if (import.meta.main) await build(process.argv[2]);
