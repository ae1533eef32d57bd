/**
 * Bundles src to dist. Apart from the bundle, `node dist/main.js` needs only package.json and the packages with native
 * code, which are copied to dist/node_modules. Loading one file instead of 700 halves the start time. The build does
 * not check types; `make verify` does.
 *
 * Usage: node hack/build.ts
 */
import { build as bundle, type BuildOptions, type Metafile } from 'esbuild';
import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
/** Packages that load native code by path. `node-addon-api`, on which bcrypt depends, is needed only to compile it. */
export const nativePackages = ['bcrypt', 'node-gyp-build', '@node-rs/argon2'];

/** A package that the output contains. */
export interface ShippedPackage {
  readonly name: string;
  readonly version: string;
  /** Licence as an SPDX expression. */
  readonly license: string;
  /** Folder of the package, relative to node_modules. */
  readonly path: string;
}

/** The platform for which native code is copied. */
interface Platform {
  /** Name of the platform in Node.js, such as `linux-x64`. */
  readonly name: string;
  /** The folder node_modules with the binary packages of `@node-rs/argon2` for this platform. */
  readonly modules: string;
}

const thisPlatform: Platform = {
  name: `${process.platform}-${process.arch}`,
  modules: join(root, 'node_modules'),
};

/** Source maps contain paths relative to this folder, so that the output does not depend on where it is written. */
const outdir = join(root, 'dist');

const shared = {
  absWorkingDir: root,
  write: false,
  bundle: true,
  format: 'esm',
  sourcemap: true,
  sourcesContent: false,
  // V8 keeps the source text in memory. Names are kept, because stack traces and profiles show them.
  minifySyntax: true,
  minifyWhitespace: true,
  logLevel: 'warning',
  // The output must not depend on tsconfig.json, because an image build does not have that file.
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
} satisfies BuildOptions;

/**
 * Writes the server to a folder and returns the packages in it. Files of earlier builds are removed last, because a
 * server may be about to load them.
 */
export async function build(folder = outdir, platform = thisPlatform): Promise<ShippedPackage[]> {
  const server = await bundle({
    ...shared,
    entryPoints: ['src/main.ts'],
    outdir,
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
  const browser = await bundle({
    ...shared,
    entryPoints: ['src/docs/explorer/browser/main.ts'],
    outfile: join(outdir, 'browser/main.js'),
  });
  for (const { path, contents } of [...server.outputFiles, ...browser.outputFiles]) {
    const file = join(folder, relative(outdir, path));
    await mkdir(dirname(file), { recursive: true });
    const isProgram = contents[0] === 0x23 && contents[1] === 0x21; // A program starts with `#!`.
    await writeFile(file, contents, { mode: isProgram ? 0o755 : 0o644 });
  }
  const natives = [...nativePackages, ...(await binaryPackages(platform))];
  for (const name of natives) await copyNative(name, folder, platform);
  const shipped = [
    ...(await Promise.all([...packagesIn(server.metafile)].map((path) => describe(path, thisPlatform.modules)))),
    ...(await Promise.all(natives.map((name) => describe(name, folderOf(name, platform))))),
  ].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  await writeFile(join(folder, 'THIRD-PARTY-NOTICES'), shipped.map(({ notice }) => notice).join('\n----\n\n'));
  const written = new Set(server.outputFiles.map(({ path }) => relative(outdir, path)));
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isFile() && /\.js(?:\.map)?$/.test(entry.name) && !written.has(entry.name))
      await rm(join(folder, entry.name));
  return shipped.map(({ name, version, license, path }) => ({ name, version, license, path }));
}

/** Copies the files that a native package loads on a platform. */
async function copyNative(name: string, folder: string, platform: Platform): Promise<void> {
  const from = join(folderOf(name, platform), name);
  await cp(from, join(folder, 'node_modules', name), {
    recursive: true,
    filter: (source) => {
      const path = source.slice(from.length + 1);
      if (path.startsWith('prebuilds/')) return path.startsWith(`prebuilds/${platform.name}`);
      return path === '' || path === 'prebuilds' || /^(?:package\.json|LICENSE.*|[^/]+\.(?:js|node))$/.test(path);
    },
  });
}

/**
 * Returns the folder node_modules with a native package. Packages that are the same on all platforms are installed only
 * for this one.
 */
const folderOf = (name: string, platform: Platform): string =>
  nativePackages.includes(name) ? thisPlatform.modules : platform.modules;

/** Returns the folders of the packages in the bundle, relative to node_modules. */
function packagesIn({ inputs }: Metafile): Set<string> {
  const folders = Object.keys(inputs).map(
    (file) => /^node_modules\/(.*node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
  );
  return new Set(
    folders.filter((folder) => folder !== undefined).map((folder) => folder.slice('node_modules/'.length)),
  );
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  /** Older form of `license`. */
  readonly licenses?: readonly { readonly type: string }[];
}

/** Packages that state their licence only in their readme. */
const licenseInReadme: Readonly<Record<string, string>> = { pause: 'MIT' };

/** Returns the data of a package, with its licence, which each copy of the package must contain. */
async function describe(path: string, modules: string): Promise<ShippedPackage & { readonly notice: string }> {
  const folder = join(modules, path);
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
  const { name, version, license = manifest.licenses?.[0]?.type ?? licenseInReadme[path] ?? 'NOASSERTION' } = manifest;
  const files = await readdir(folder);
  const file = files.find((one) => (path in licenseInReadme ? /^readme/i : /^licen[cs]e/i).test(one));
  const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
  return { name, version, license, path, notice: `${path} ${version} (${license})\n\n${text.trim()}\n` };
}

/** Returns the packages with the binary of a platform. */
async function binaryPackages({ modules }: Platform): Promise<string[]> {
  const text = await readFile(join(root, 'node_modules/@node-rs/argon2/package.json'), 'utf8');
  const { optionalDependencies } = JSON.parse(text) as { optionalDependencies: Record<string, string> };
  const scope = await readdir(join(modules, '@node-rs'));
  return Object.keys(optionalDependencies).filter((name) => scope.includes(name.split('/')[1] ?? ''));
}

if (import.meta.main) await build(process.argv[2]);
