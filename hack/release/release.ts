/** Builds the files of a release. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ShippedPackage } from '../build.ts';
import { absoluteLinks, section } from './changelog.ts';
import { chart, descriptions } from './chart.ts';
import { cli } from './cli.ts';
import { components } from './components.ts';
import { readPins } from './debian.ts';
import { imageConfig } from './image-config.ts';
import { licenseProblems } from './licenses.ts';
import { crds, manifests } from './manifests.ts';
import { archive, architectures, type Archive, type Image } from './oci.ts';
import { provenance } from './provenance.ts';
import { rootFilesystem } from './root-filesystem.ts';
import { sbom } from './sbom.ts';
import { tarGzip } from './tar.ts';

export interface Release {
  /** Folder of the work tree. */
  readonly root: string;
  readonly version: string;
  /** Repository of the image, without a tag. */
  readonly image: string;
  /** URL of the repository on the web, without a slash at the end. */
  readonly source?: string;
  /** URI of the system that runs the build. */
  readonly builder: string;
  /** Commit in hexadecimal digits. */
  readonly commit: string;
  /** Time of the commit in RFC 3339, the only time in the files. */
  readonly created: string;
}

/** Maximum total size of the compressed layers of one platform, in bytes. */
const maxImage = 75_000_000;

/** Returns the files by name, each as pieces. Throws if a licence or the size of an image is not allowed. */
export async function releaseFiles(release: Release): Promise<Map<string, readonly Buffer[]>> {
  const { root, version, source } = release;
  const files = new Map<string, readonly Buffer[]>();
  const add = (name: string, content: string | Buffer): unknown => files.set(name, [Buffer.from(content)]);
  const addJson = (name: string, value: object): unknown => add(name, `${JSON.stringify(value, null, 2)}\n`);

  const { built, packages } = await image(release);
  files.set(`platform-apiserver-image-${version}.tar`, built.pieces);
  add(`platform-apiserver-${version}.tgz`, await chart(release));
  add(`platform-apiserver-${version}.yaml`, manifests(release));
  add(`platform-apiserver-crds-${version}.yaml`, crds(release));
  add(`platform-apiserver-api-${version}.tar.gz`, await tarGzip(descriptions('api', root)));
  add(`platform-apiserver-cli-${version}.tgz`, await cli(release));

  const notes = section(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version) ?? '';
  add('release-notes.md', `${source === undefined ? notes : absoluteLinks(notes, `${source}/blob/v${version}`)}\n`);
  const parts = components(root, packages, await readPins());
  addJson('sbom.cdx.json', sbom(release, parts, built.digest));
  const subjects = new Map([...files].map(([name, pieces]) => [name, sha256(pieces)]));
  subjects.set(release.image, built.digest.replace('sha256:', ''));
  addJson('provenance.intoto.json', provenance(release, parts, subjects));
  const sums = [...files].toSorted(([a], [b]) => (a < b ? -1 : 1));
  add('SHA256SUMS', sums.map(([name, pieces]) => `${sha256(pieces)}  ${name}\n`).join(''));
  return files;
}

async function image(release: Release): Promise<{ readonly built: Archive; readonly packages: ShippedPackage[] }> {
  const platforms: Record<string, Image['platforms']['amd64']> = {};
  const packages: ShippedPackage[] = [];
  for (const architecture of architectures) {
    const { layers, packages: shipped } = await rootFilesystem(architecture);
    platforms[architecture] = layers;
    packages.push(...shipped);
  }
  const problems = licenseProblems(packages);
  if (problems.length > 0) throw new Error(problems.join('\n'));

  const labels = {
    'org.opencontainers.image.title': 'platform-apiserver',
    'org.opencontainers.image.version': release.version,
    'org.opencontainers.image.revision': release.commit,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    ...(release.source === undefined ? {} : { 'org.opencontainers.image.source': release.source }),
  };
  const built = await archive(
    {
      name: `${release.image}:${release.version}`,
      platforms,
      config: { ...imageConfig(), Labels: labels },
      created: release.created,
    },
    { compress: true },
  );
  for (const architecture of architectures) {
    const size = built.sizes[architecture] ?? 0;
    console.error(`the image for ${architecture} takes ${(size / 1e6).toFixed(1)} MB`);
    if (size > maxImage) throw new Error(`the image for ${architecture} takes ${size} bytes, more than ${maxImage}`);
  }
  return { built, packages };
}

function sha256(pieces: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
