/** Container images without a registry: OCI image layouts in tar archives, for skopeo and for `ctr images import`. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { tar, text, type Entry } from './tar.ts';

export const architectures = ['amd64', 'arm64'] as const;
export type Architecture = (typeof architectures)[number];

/** Architecture of this machine. */
export const localArchitecture: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** Configuration of the container, as in a Dockerfile. */
export interface ImageConfig {
  readonly User?: string;
  readonly WorkingDir?: string;
  readonly Env?: readonly string[];
  readonly ExposedPorts?: Readonly<Record<string, object>>;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Labels?: Readonly<Record<string, string>>;
}

export interface Image {
  /** Name with tag; the host name is never resolved. */
  readonly name: string;
  /** The layers of each platform, lowest first. */
  readonly platforms: Partial<Record<Architecture, readonly (readonly Entry[])[]>>;
  readonly config: ImageConfig;
  /** Creation time of the image, in RFC 3339. */
  readonly created?: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export interface Archive {
  /** The bytes of the archive in pieces, which are not copies of the files' contents. */
  readonly pieces: readonly Buffer[];
  /** Digest of the index, by which registries identify the image. */
  readonly digest: string;
  /** Total size of the layers of each platform, in bytes. */
  readonly sizes: Partial<Record<Architecture, number>>;
}

const mediaType = (name: string): string => `application/vnd.oci.image.${name}`;

const digestOf = (bytes: readonly Buffer[]): string => {
  const hash = createHash('sha256');
  for (const piece of bytes) hash.update(piece);
  return `sha256:${hash.digest('hex')}`;
};

/**
 * Returns an image as an archive. Compressing the layers of one platform of the server takes 15 seconds of CPU time.
 * Compression does not change the id of the image.
 */
export async function archive(image: Image, { compress = false } = {}): Promise<Archive> {
  const files = new Map<string, Entry>();
  const add = (type: string, bytes: readonly Buffer[]): Descriptor => {
    const digest = digestOf(bytes);
    const content = Buffer.concat(bytes);
    const path = `blobs/${digest.replace(':', '/')}`;
    files.set(path, { path, content });
    return { mediaType: mediaType(type), digest, size: content.length };
  };
  const addJson = (type: string, value: object): Descriptor => add(type, [Buffer.from(JSON.stringify(value))]);

  const addLayer = async (entries: readonly Entry[]): Promise<{ id: string; descriptor: Descriptor }> => {
    const bytes = await tar(entries);
    const descriptor = compress
      ? add('layer.v1.tar+gzip', [await promisify(gzip)(Buffer.concat(bytes), { level: 9 })])
      : add('layer.v1.tar', bytes);
    return { id: digestOf(bytes), descriptor };
  };

  const sizes: Partial<Record<Architecture, number>> = {};
  const manifests: object[] = [];
  for (const architecture of architectures) {
    const entries = image.platforms[architecture];
    if (entries === undefined) continue;
    const layers = await Promise.all(entries.map(addLayer));
    const created = image.created === undefined ? {} : { created: image.created };
    const config = addJson('config.v1+json', {
      ...created,
      architecture,
      os: 'linux',
      config: image.config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ id }) => id) },
      history: layers.map(() => created),
    });
    const descriptors = layers.map(({ descriptor }) => descriptor);
    sizes[architecture] = descriptors.reduce((sum, { size }) => sum + size, 0);
    const manifest = { schemaVersion: 2, mediaType: mediaType('manifest.v1+json'), config, layers: descriptors };
    manifests.push({ ...addJson('manifest.v1+json', manifest), platform: { architecture, os: 'linux' } });
  }
  const index = addJson('index.v1+json', { schemaVersion: 2, mediaType: mediaType('index.v1+json'), manifests });
  const annotations = {
    'io.containerd.image.name': image.name,
    'org.opencontainers.image.ref.name': image.name.slice(image.name.lastIndexOf(':') + 1),
  };
  const pieces = await tar([
    text('oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
    text('index.json', JSON.stringify({ schemaVersion: 2, manifests: [{ ...index, annotations }] })),
    ...files.values(),
  ]);
  return { pieces, digest: index.digest, sizes };
}
