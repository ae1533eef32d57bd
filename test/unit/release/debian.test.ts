/** Tests the cache of Debian packages for the image. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missingIn, type DebianPackage } from '../../../hack/release/debian.ts';

const pinned = (name: string): DebianPackage => ({ name, version: '1', sha256: hash('sha256', name) });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'platform-debian-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a release fetches Debian packages again that are missing in the cache or have changed there', async () => {
  const [intact, changed, missing] = [pinned('intact'), pinned('changed'), pinned('missing')];
  writeFileSync(join(folder, intact.sha256), 'intact');
  writeFileSync(join(folder, changed.sha256), 'attacked');
  expect(await missingIn(folder, [intact, changed, missing])).toEqual([changed, missing]);
});
