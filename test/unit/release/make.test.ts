/** Tests the targets of the Makefile that sign and publish a release. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, hash, verify } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const makefile = join(import.meta.dirname, '../../../Makefile');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'platform-release-'));
  mkdirSync(join(folder, 'dist/release'), { recursive: true });
});

afterEach(() => rmSync(folder, { recursive: true }));

const write = (path: string, text: string): void => writeFileSync(join(folder, path), text);
const make = (...args: readonly string[]) =>
  spawnSync('make', ['-f', makefile, ...args], { cwd: folder, encoding: 'utf8' });

test('make sign signs checksums that match the files', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const sums = `${hash('sha256', 'content')}  file\n`;
  write('key.pem', privateKey.export({ type: 'sec1', format: 'pem' }).toString());
  write('dist/release/file', 'content');
  write('dist/release/SHA256SUMS', sums);
  expect(make('sign', 'KEY=key.pem')).toMatchObject({ status: 0 });
  const signature = readFileSync(join(folder, 'dist/release/SHA256SUMS.sig'), 'utf8');
  expect(verify('sha256', Buffer.from(sums), publicKey, Buffer.from(signature, 'base64'))).toBe(true);
});

test.each([
  ['a file that differs from its checksum', `${hash('sha256', 'other')}  file\n`],
  ['a missing file', `${hash('sha256', 'content')}  file\n${hash('sha256', 'content')}  missing\n`],
  ['a line that is not a checksum', `${hash('sha256', 'content')}  file\nnot a checksum\n`],
])('make sign refuses checksums with %s', (_, sums) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  write('key.pem', privateKey.export({ type: 'sec1', format: 'pem' }).toString());
  write('dist/release/file', 'content');
  write('dist/release/SHA256SUMS', sums);
  expect(make('sign', 'KEY=key.pem').stderr).toContain('sha256sum: WARNING');
  expect(() => readFileSync(join(folder, 'dist/release/SHA256SUMS.sig'))).toThrow('ENOENT');
});

test.each([
  ['release', '1.2.3', false],
  ['pre-release', '1.2.3-rc.1', true],
])('make publish creates a %s on GitHub for version %s', (_, version, isPrerelease) => {
  const { stdout } = make('--dry-run', 'publish', `VERSION=${version}`, 'IMAGE=registry.example.com/name');
  expect(stdout).toContain(`gh release create v${version} `);
  expect(stdout.includes(' --prerelease ')).toBe(isPrerelease);
});
