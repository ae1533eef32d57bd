import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { chart } from '../../../hack/release/chart.ts';
import { crds, manifests } from '../../../hack/release/manifests.ts';
import type { Release } from '../../../hack/release/release.ts';
import { readVersion } from '../../../src/runtime/package.ts';
import { unpack } from './unpack.ts';

const release: Release = {
  root: join(import.meta.dirname, '../../..'),
  version: readVersion(),
  image: 'registry.example.com/team/platform-apiserver',
  source: 'https://example.com/o/r',
  builder: 'https://example.com/builder',
  commit: 'c0ffee',
  created: '2026-01-31T12:00:00Z',
};

const yaml = async (path: string): Promise<Record<string, unknown>> =>
  parse((await unpack(await chart(release))).get(`platform-apiserver/${path}`)?.content.toString() ?? '') as Record<
    string,
    unknown
  >;

test('the chart contains the descriptions of the API, without examples', async () => {
  const files = [...(await unpack(await chart(release))).keys()].filter((path) => path.includes('/api/'));
  const names = ['custom-resources.json', 'custom-resources.v3.json', 'platform.json', 'platform.v3.json'];
  expect(files).toEqual(names.map((name) => `platform-apiserver/api/${name}`));
});

test('two builds of the chart are identical', async () => {
  expect((await chart(release)).equals(await chart(release))).toBe(true);
});

test('the chart installs the image of the release by default', async () => {
  expect(await yaml('values.yaml')).toMatchObject({ image: { repository: release.image, tag: '' } });
});

test('the chart has the annotations that Artifact Hub reads', async () => {
  const metadata = await yaml('Chart.yaml');
  expect(metadata).toMatchObject({
    version: release.version,
    appVersion: release.version,
    home: release.source,
    sources: ['https://example.com/o/r/tree/c0ffee'],
  });
  const annotations = metadata['annotations'] as Record<string, string>;
  const parsed = Object.fromEntries(
    ['images', 'changes', 'links'].map((name) => [name, parse(annotations[`artifacthub.io/${name}`] ?? '') as unknown]),
  );
  expect(parsed['images']).toEqual([
    {
      name: 'platform-apiserver',
      image: `${release.image}:${release.version}`,
      platforms: ['linux/amd64', 'linux/arm64'],
    },
  ]);
  expect(parsed['changes']).toContain('`http.enabled: false` disables plain HTTP.');
  expect(parsed['links']).toEqual([
    { name: 'Documentation', url: `https://example.com/o/r/blob/v${release.version}/docs/README.md` },
  ]);
  expect(annotations).toMatchObject({
    'artifacthub.io/category': 'security',
    'artifacthub.io/license': 'Apache-2.0',
    'artifacthub.io/prerelease': 'false',
  });
});

const kinds = (text: string): string[] =>
  parseAllDocuments(text).map((document) => {
    expect(document.errors).toEqual([]);
    return (document.toJS() as { kind: string }).kind;
  });

test('the manifests contain the Namespace, the CRDs and the image of the release', () => {
  expect(kinds(crds(release))).toEqual(Array.from({ length: 4 }, () => 'CustomResourceDefinition'));
  expect(kinds(manifests(release))).toEqual(
    expect.arrayContaining(['CustomResourceDefinition', 'Namespace', 'Deployment']),
  );
  expect(manifests(release)).toContain(`image: ${release.image}:${release.version}\n`);
});
