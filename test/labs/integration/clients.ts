/**
 * Builds or fetches the clients that are not part of the cluster's programs. Clients that take long to build are
 * cached.
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';
import { execute, output } from '../../../hack/cluster/exec.ts';
import { goBuildFlags } from '../../../hack/cluster/go-modules.ts';
import { withLock } from '../../../hack/cluster/lock.ts';
import { progress } from '../../../hack/cluster/progress.ts';
import type { Found, Lab } from './lab.ts';

/** Folder of these clients. */
export const clients = join(import.meta.dirname, '../../clients');
const cache = (...parts: readonly string[]): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', ...parts);

/** Prints the title of slow work while it runs. */
async function shown<T>(title: string, work: () => Promise<T>): Promise<T> {
  const step = progress(title);
  let succeeded = false;
  try {
    const result = await work();
    succeeded = true;
    return result;
  } finally {
    step.end(succeeded);
  }
}

/**
 * Builds the programs of test/clients/go. The flags are the same as for the cluster's programs, so that compiled
 * packages are reused.
 */
export async function buildGoClients(dir: string): Promise<Lab['go']> {
  const folder = join(dir, 'clients');
  await mkdir(folder);
  const flags = await goBuildFlags();
  await shown('building the clients in Go', () =>
    output('go', ['build', ...flags, '-o', `${folder}/`, './...'], {
      cwd: join(clients, 'go'),
      env: { CGO_ENABLED: '0' },
    }),
  );
  return {
    informers: join(folder, 'informers'),
    cases: join(folder, 'cases'),
    oauth: join(folder, 'oauth'),
    controller: join(folder, 'controller'),
    replay: join(folder, 'replay'),
    reviewer: join(folder, 'reviewer'),
    collector: join(folder, 'collector'),
  };
}

const isProgram = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/** Returns `path`, or the reason why the program is unavailable. If the program is not cached, `obtain` installs it. */
async function kept(what: string, path: string, obtain: () => Promise<void>): Promise<Found> {
  try {
    await withLock(path, async () => {
      if (!(await isProgram(path))) await shown(`obtaining ${what}`, obtain);
    });
    return { path };
  } catch (error) {
    return { reason: `${what} is unavailable; it can be placed at ${path}: ${String(error)}` };
  }
}

/** Works in a temporary folder that is removed afterwards. */
async function inside(name: string, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), `${name}-`));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the kubectl that the variable OTHER_KUBECTL names. By default, returns the kubectl of Debian's package, which
 * is unpacked but not installed.
 */
export async function obtainOtherKubectl(): Promise<Found> {
  const named = process.env['OTHER_KUBECTL'] ?? '';
  if (named !== '') return { path: named };
  const name = 'kubernetes-client';
  const folder = cache(name);
  const path = join(folder, 'kubectl');
  return kept(`Debian's package ${name}, whose kubectl is tried too`, path, () =>
    inside(name, async (work) => {
      const download = (): Promise<{ code: number }> => execute('apt-get', ['download', name], { cwd: work });
      if ((await download()).code !== 0) {
        // The package lists of the machine may never have been updated.
        await output('apt-get', ['update']);
        await output('apt-get', ['download', name], { cwd: work });
      }
      const [archive] = (await readdir(work)).filter((file) => file.endsWith('.deb'));
      await output('dpkg-deb', ['--extract', archive ?? '', work], { cwd: work });
      await mkdir(folder, { recursive: true });
      await output('cp', [join(work, 'usr/bin/kubectl'), `${path}.new`]);
      await rename(`${path}.new`, path);
    }),
  );
}

const pythonPackages = {
  python: 'the clients in Python',
  schemathesis: 'Schemathesis',
  'generated/python': 'openapi-python-client',
} as const;

/** Returns the folder with the Python packages of a requirements.txt in test/clients. */
export async function obtainPythonPackages(of: keyof typeof pythonPackages): Promise<Found> {
  const requirements = join(clients, of, 'requirements.txt');
  const { stdout } = await execute('python3', ['--version']);
  const hash = createHash('sha256')
    .update(stdout)
    .update(await readFile(requirements));
  const path = cache('python', hash.digest('hex').slice(0, 16));
  return kept(pythonPackages[of], path, () =>
    inside('python', async (work) => {
      const target = join(work, 'packages');
      const pip = ['-m', 'pip', 'install', '--quiet', '--no-warn-conflicts', '--root-user-action=ignore'];
      await output('python3', [...pip, '--target', target, '--requirement', requirements]);
      await mkdir(cache('python'), { recursive: true });
      await output('cp', ['--recursive', target, `${path}.new`]);
      await rename(`${path}.new`, path);
    }),
  );
}

/** Returns the folder with the npm packages of the client generators for TypeScript and of their clients. */
export async function obtainNpmPackages(): Promise<Found> {
  const from = join(clients, 'generated/typescript');
  const hash = createHash('sha256').update(await readFile(join(from, 'package-lock.json')));
  const path = cache('npm', hash.digest('hex').slice(0, 16));
  return kept('openapi-typescript', path, () =>
    inside('npm', async (work) => {
      for (const file of ['package.json', 'package-lock.json']) await output('cp', [join(from, file), work]);
      await output('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: work });
      await mkdir(cache('npm'), { recursive: true });
      await output('cp', ['--recursive', work, `${path}.new`]);
      await rename(`${path}.new`, path);
    }),
  );
}

/**
 * Returns the Chromium that the variable CHROMIUM names. By default, returns the Chromium of the npm package, which is
 * unpacked once per installation. The package has libraries and fonts for machines without them, so that pages have the
 * same layout everywhere.
 */
export async function obtainChromium(): Promise<Found> {
  const named = process.env['CHROMIUM'] ?? '';
  if (named !== '') return { path: named };
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { reason: 'the npm package of Chromium is for Linux on x64: set CHROMIUM to the path of another' };
  const packed = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '../bin');
  const folder = join(packed, '../.unpacked');
  return kept('Chromium', join(folder, 'chromium'), async () => {
    const work = `${folder}.new`;
    await rm(work, { recursive: true, force: true });
    await mkdir(work, { recursive: true });
    const unpack = (name: string, options: object = {}): Promise<void> =>
      pipeline(
        createReadStream(join(packed, `${name}.br`)),
        createBrotliDecompress(),
        createWriteStream(join(work, name), options),
      );
    await Promise.all([unpack('chromium', { mode: 0o755 }), unpack('al2023.tar'), unpack('fonts.tar')]);
    for (const name of ['al2023.tar', 'fonts.tar']) await output('tar', ['-xf', name], { cwd: work });
    // An absolute path would be wrong after node_modules is copied or moved. Without fonts, text has no size.
    const fonts = `<dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir>`;
    await writeFile(join(work, 'fonts.conf'), `<fontconfig>${fonts}</fontconfig>`);
    await rename(work, folder);
  });
}
