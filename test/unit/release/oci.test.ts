import { expect, test } from '@jest/globals';
import { gunzipSync } from 'node:zlib';
import { archive, type Image } from '../../../hack/release/oci.ts';
import { text } from '../../../hack/release/tar.ts';
import { sha256, unpack } from './unpack.ts';

const image: Image = {
  name: 'registry.example.com:5000/name:1.2.3',
  platforms: {
    amd64: [[text('common', 'of all platforms')], [text('a', 'for amd64')]],
    arm64: [[text('common', 'of all platforms')], [text('a', 'for arm64')]],
  },
  config: { User: '65532:65532', Entrypoint: ['a'] },
  created: '2026-01-31T12:00:00Z',
};

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

const json = (bytes: Buffer): unknown => JSON.parse(bytes.toString());

/** Returns the index and the platforms of an image, after checking the digest and the size of each blob. */
async function open(compress: boolean) {
  const { pieces, digest } = await archive(image, { compress });
  const files = await unpack(Buffer.concat(pieces));
  const blob = (descriptor: Descriptor): Buffer => {
    const content = files.get(`blobs/${descriptor.digest.replace(':', '/')}`)?.content ?? Buffer.alloc(0);
    expect([`sha256:${sha256(content)}`, content.length]).toEqual([descriptor.digest, descriptor.size]);
    return content;
  };
  const [top] = (json(files.get('index.json')?.content as Buffer) as { manifests: [Descriptor] }).manifests;
  expect(top.digest).toBe(digest);
  const { manifests } = json(blob(top)) as { manifests: Descriptor[] };
  const platforms = manifests.map(({ platform, ...descriptor }) => {
    const { config, layers } = json(blob(descriptor)) as { config: Descriptor; layers: Descriptor[] };
    const parsed = json(blob(config)) as { architecture: string; rootfs: { diff_ids: string[] } };
    return { platform, id: config.digest, config: parsed, layers: layers.map((one) => ({ ...one, bytes: blob(one) })) };
  });
  return { layout: files.get('oci-layout')?.content.toString(), top, platforms, blobs: files.size - 2 };
}

test.each([
  ['a compressed', true],
  ['an uncompressed', false],
] as const)('%s image is an OCI layout with one index that lists all platforms', async (_, compress) => {
  const { layout, top, platforms, blobs } = await open(compress);
  expect(layout).toBe('{"imageLayoutVersion":"1.0.0"}');
  expect(top.annotations).toEqual({
    'io.containerd.image.name': image.name,
    'org.opencontainers.image.ref.name': '1.2.3',
  });
  expect(platforms.map(({ platform }) => platform)).toEqual([
    { architecture: 'amd64', os: 'linux' },
    { architecture: 'arm64', os: 'linux' },
  ]);
  for (const { platform, config, layers } of platforms) {
    expect(config).toMatchObject({
      created: image.created,
      architecture: platform?.architecture,
      config: image.config,
    });
    const contents = layers.map(({ bytes }) => (compress ? gunzipSync(bytes) : bytes));
    expect(contents.map((bytes) => `sha256:${sha256(bytes)}`)).toEqual(config.rootfs.diff_ids);
    const files = await unpack(contents[1] as Buffer);
    expect(files.get('a')?.content.toString()).toBe(`for ${platform?.architecture}`);
  }
  // The platforms share the blob of their common layer: index, 2 manifests, 2 configurations, 3 layers.
  expect(blobs).toBe(8);
});

const ids = async (compress: boolean): Promise<string[]> => (await open(compress)).platforms.map(({ id }) => id);

test('the compression of layers does not change the ID of an image', async () => {
  expect(await ids(true)).toEqual(await ids(false));
});
