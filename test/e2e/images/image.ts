/** Container images without a registry: OCI image layouts in tar archives for `ctr images import`. */
import { createHash } from 'node:crypto';
import { tar, type TarEntry } from '../../../src/runtime/tar.ts';

export interface Image {
  /** Name with tag; the host name is never resolved. */
  readonly name: string;
  readonly layers: readonly (readonly TarEntry[])[];
  readonly config: {
    readonly User?: string;
    readonly WorkingDir?: string;
    readonly Env?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Cmd?: readonly string[];
  };
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const mediaType = (name: string): string => `application/vnd.oci.image.${name}`;

const json = (value: unknown): Buffer[] => [Buffer.from(JSON.stringify(value))];

export async function archive({ name, layers, config }: Image): Promise<Buffer[]> {
  const files: TarEntry[] = [];
  const add = (type: string, bytes: readonly Buffer[]): Descriptor => {
    const hash = createHash('sha256');
    for (const piece of bytes) hash.update(piece);
    const hex = hash.digest('hex');
    const content = Buffer.concat(bytes);
    files.push({ path: `blobs/sha256/${hex}`, content });
    return { mediaType: mediaType(type), digest: `sha256:${hex}`, size: content.length };
  };

  const descriptors: Descriptor[] = [];
  for (const entries of layers) descriptors.push(add('layer.v1.tar', await tar(entries)));
  const configuration = add(
    'config.v1+json',
    json({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: descriptors.map(({ digest }) => digest) },
    }),
  );
  const manifest = add(
    'manifest.v1+json',
    json({ schemaVersion: 2, mediaType: mediaType('manifest.v1+json'), config: configuration, layers: descriptors }),
  );
  const annotations = { 'io.containerd.image.name': name };
  return await tar([
    { path: 'oci-layout', content: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
    { path: 'index.json', content: json({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] })[0] as Buffer },
    ...files,
  ]);
}
