/**
 * The base of the image: the C and C++ libraries of Debian 12 that Node.js needs, pinned in debian.json. apt-get
 * fetches the packages from the machine's own sources and verifies their signatures.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { extract } from 'tar-stream';
import { output } from '../cluster/exec.ts';
import { withLock } from '../cluster/lock.ts';
import { progress } from '../cluster/progress.ts';
import { userCache } from '../cluster/user-cache.ts';
import type { Architecture } from './oci.ts';
import { text, type Entry } from './tar.ts';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
}

export type Pins = Readonly<Record<Architecture, readonly DebianPackage[]>>;

export const pinFile = join(import.meta.dirname, 'debian.json');

export const readPins = async (): Promise<Pins> => JSON.parse(await readFile(pinFile, 'utf8')) as Pins;

/** Selects libraries, licences, and the files by which scanners recognize the Debian release. */
const wanted =
  /^(?:(?:usr\/)?lib(?:64)?\/(?:[^/]+\/)?[^/]+\.so[^/]*|usr\/share\/doc\/[^/]+\/copyright|(?:etc|usr\/lib)\/os-release|etc\/debian_version)$/;

/**
 * Returns the files of the base. Scanners read the installed versions in var/lib/dpkg/status.d, as in other images
 * without dpkg.
 */
export async function debianFiles(architecture: Architecture): Promise<Entry[]> {
  const pins = (await readPins())[architecture];
  const folder = join(userCache, 'debian', architecture);
  await withLock(folder, () => fetchMissing(architecture, folder, pins));
  const entries: Entry[] = [];
  for (const one of pins) {
    const archive = join(folder, one.sha256);
    entries.push(
      ...(await contents(archive)),
      text(`var/lib/dpkg/status.d/${one.name}`, await output('dpkg-deb', ['--field', archive])),
    );
  }
  return entries;
}

async function contents(archive: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  const files = extract();
  files.end(execFileSync('dpkg-deb', ['--fsys-tarfile', archive], { maxBuffer: 64 * 1024 * 1024 }));
  for await (const file of files) {
    const path = file.header.name.replace(/^\.\//, '');
    const pieces: Buffer[] = [];
    for await (const piece of file) pieces.push(piece as Buffer);
    if (!wanted.test(path)) continue;
    const { type, linkname, mode } = file.header;
    if (type === 'symlink') entries.push({ path, link: linkname });
    else if (type === 'file') entries.push({ path, content: Buffer.concat(pieces), mode });
  }
  return entries;
}

const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Returns the packages that are missing in a folder, or whose file in the folder has changed. */
export async function missingIn(folder: string, pins: readonly DebianPackage[]): Promise<DebianPackage[]> {
  const missing: DebianPackage[] = [];
  for (const one of pins) {
    const bytes = await readFile(join(folder, one.sha256)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (bytes === undefined || sha256Of(bytes) !== one.sha256) missing.push(one);
  }
  return missing;
}

async function fetchMissing(architecture: Architecture, folder: string, pins: readonly DebianPackage[]): Promise<void> {
  const missing = await missingIn(folder, pins);
  if (missing.length === 0) return;
  await mkdir(folder, { recursive: true });
  await withApt(architecture, async (apt, work) => {
    const names = missing.map(({ name, version }) => `${name}=${version}`);
    await apt('download', ...names).catch((error: unknown) => {
      throw new Error(
        `cannot fetch ${names.join(' ')} for ${architecture}: the sources of apt must contain this version of Debian 12; ` +
          'make update-base pins the current versions',
        { cause: error },
      );
    });
    for (const file of await readdir(work)) {
      if (!file.endsWith('.deb')) continue;
      const sha256 = sha256Of(await readFile(join(work, file)));
      if (!missing.some((one) => one.sha256 === sha256))
        throw new Error(`${file} has the SHA-256 ${sha256}, which debian.json does not contain`);
      await rename(join(work, file), join(folder, sha256));
    }
  });
}

/**
 * Runs apt-get with an empty database of its own, so that it can read packages of any architecture and changes nothing
 * on the machine.
 */
export async function withApt<T>(
  architecture: Architecture,
  work: (apt: (...args: readonly string[]) => Promise<string>, folder: string) => Promise<T>,
): Promise<T> {
  await mkdir(userCache, { recursive: true });
  const folder = await mkdtemp(join(userCache, 'apt-'));
  const step = progress(`fetching the packages of Debian for ${architecture}`);
  try {
    for (const path of ['state/lists/partial', 'cache/archives/partial'])
      await mkdir(join(folder, path), { recursive: true });
    await writeFile(join(folder, 'status'), '');
    const options = [
      `Dir::State=${folder}/state`,
      `Dir::State::status=${folder}/status`,
      `Dir::Cache=${folder}/cache`,
      `APT::Architecture=${architecture}`,
      `APT::Architectures=${architecture}`,
      'Acquire::Languages=none',
      // By default, apt-get downloads as the user _apt, who cannot write to the folder.
      'APT::Sandbox::User=',
    ].flatMap((option) => ['--option', option]);
    const apt = (...args: readonly string[]): Promise<string> =>
      output('apt-get', ['--quiet=2', ...options, ...args], { cwd: folder, timeout: 300_000 });
    await apt('update');
    const result = await work(apt, folder);
    step.end(true);
    return result;
  } catch (error) {
    step.end(false);
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}
