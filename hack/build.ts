/**
 * Bundles src to dist: `node dist/main.js` needs only the packages with native code, which are copied to dist/node_modules, and
 * package.json. Loading one file instead of 700 halves the start time. Types are checked by make verify.
 *
 * Usage: node hack/build.ts
 */
import { build as bundle, type BuildOptions, type Metafile } from 'esbuild';
import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
/** Packages that load native code by path. `node-addon-api`, on which bcrypt depends, only compiles it. */
const nativePackages = ['bcrypt', 'node-gyp-build', '@node-rs/argon2'];

const shared = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
  // The same without tsconfig.json, which an image build does not have.
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
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
    // Packages in CommonJS call it for modules of Node.js.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  // Next to the file that reads it (src/docs/explorer/modules.ts).
  await bundle({
    ...shared,
    entryPoints: ['src/docs/explorer/browser/main.ts'],
    outfile: join(folder, 'browser/main.js'),
  });
  const natives = await installed();
  for (const name of natives) await copyNative(name, folder);
  await writeFile(join(folder, 'THIRD-PARTY-NOTICES'), await notices([...packagesIn(server.metafile), ...natives]));
  const written = new Set(Object.keys(server.metafile.outputs).map((file) => join(root, file)));
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const file = join(folder, entry.name);
    if (entry.isFile() && /\.js(?:\.map)?$/.test(file) && !written.has(file)) await rm(file);
  }
}

/** Copies what a native package loads on this platform. */
async function copyNative(name: string, folder: string): Promise<void> {
  const from = join(root, 'node_modules', name);
  const platform = `${process.platform}-${process.arch}`;
  await cp(from, join(folder, 'node_modules', name), {
    recursive: true,
    filter: (source) => {
      const path = source.slice(from.length + 1);
      if (path.startsWith('prebuilds/')) return path.startsWith(`prebuilds/${platform}`);
      return path === '' || path === 'prebuilds' || /^(?:package\.json|LICENSE.*|[^/]+\.(?:js|node))$/.test(path);
    },
  });
}

/** Returns the folders of the packages in the bundle, relative to node_modules. */
function packagesIn({ inputs }: Metafile): Set<string> {
  const folders = Object.keys(inputs).map(
    (file) => /^node_modules\/(.*node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
  );
  return new Set(
    folders.filter((folder) => folder !== undefined).map((folder) => folder.slice('node_modules/'.length)),
  );
}

/** Returns the licences of packages, which each copy of them must contain. */
async function notices(folders: readonly string[]): Promise<string> {
  const texts = await Promise.all(
    folders
      .toSorted((a, b) => (a < b ? -1 : 1))
      .map(async (name) => {
        const folder = join(root, 'node_modules', name);
        const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Record<
          string,
          string
        >;
        const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
        const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
        return `${name} ${version}${license === undefined ? '' : ` (${license})`}\n\n${text.trim()}\n`;
      }),
  );
  return texts.join('\n----\n\n');
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
