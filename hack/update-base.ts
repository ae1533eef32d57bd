/**
 * Pins the current versions of the Debian packages that the image contains (hack/release/debian.json). On this machine,
 * apt must use the package sources of Debian 12.
 *
 * Usage: node hack/update-base.ts
 */
import { writeGenerated } from './generated.ts';
import { pinFile, withApt, type DebianPackage } from './release/debian.ts';
import { architectures } from './release/oci.ts';

/** gcc-12-base contains the licence of the two libraries of GCC, and base-files the name of the distribution. */
const names = ['base-files', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6'];

const pins: Record<string, DebianPackage[]> = {};
for (const architecture of architectures) {
  const uris = await withApt(architecture, (apt) => apt('--print-uris', 'download', ...names));
  pins[architecture] = [...uris.matchAll(/^'[^']+' (\S+)_(\S+)_\S+\.deb \d+ SHA256:([0-9a-f]{64})$/gm)].map(
    ([, name, version, sha256]) => ({ name, version: decodeURIComponent(version as string), sha256 }) as DebianPackage,
  );
}
await writeGenerated(pinFile, JSON.stringify(pins));
