/** Third-party components of the image: npm packages, Node.js and Debian packages. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ShippedPackage } from '../build.ts';
import type { Pins } from './debian.ts';
import { architectures } from './oci.ts';
import { nodeArchitectures } from './platforms.ts';

export interface Component {
  readonly type: 'library' | 'platform';
  readonly name: string;
  readonly version: string;
  /** Package URL. */
  readonly purl: string;
  /** Hash of the package as it was downloaded. */
  readonly hash: { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string };
  /** Licence as an SPDX expression. The licences of Debian packages are in the image instead. */
  readonly license?: string;
  /** Name of the component in vulnerability databases, if a package URL is not enough. */
  readonly cpe?: string;
}

interface LockFile {
  readonly packages: Readonly<
    Record<string, { readonly version: string; readonly license: string; readonly integrity: string }>
  >;
}

/** Returns the components in the order of their package URLs. */
export function components(root: string, packages: readonly ShippedPackage[], pins: Pins): Component[] {
  const [own, platform] = [root, join(root, 'hack/release/platform')].map(
    (folder) => (JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as LockFile).packages,
  ) as [LockFile['packages'], LockFile['packages']];
  const npm = (path: string): Pick<Component, 'version' | 'hash' | 'purl'> => {
    const entry = own[`node_modules/${path}`] ?? platform[`node_modules/${path}`];
    if (entry === undefined) throw new Error(`no package-lock.json contains ${path}`);
    const { version, integrity } = entry;
    const content = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
    const name = path.split('node_modules/').at(-1) as string;
    return { version, hash: { alg: 'SHA-512', content }, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` };
  };
  const all: Component[] = packages.map(({ name, path, license }) => ({
    type: 'library',
    name,
    license,
    ...npm(path),
  }));
  for (const architecture of architectures) {
    const node = npm(`node-linux-${nodeArchitectures[architecture]}`);
    const cpe = `cpe:2.3:a:nodejs:node.js:${node.version}:*:*:*:*:*:*:*`;
    all.push({ type: 'platform', name: 'node', license: 'MIT', cpe, ...node });
    for (const { name, version, sha256 } of pins[architecture])
      all.push({
        type: 'library',
        name,
        version,
        purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`,
        hash: { alg: 'SHA-256', content: sha256 },
      });
  }
  const byPurl = new Map(all.map((one) => [one.purl, one]));
  return [...byPurl.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1));
}
