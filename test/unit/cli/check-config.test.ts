import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkConfig } from '../../../src/cli/check-config.ts';

let folder = '';
const said: string[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'platform-apiserver-cli-'));
  for (const method of ['log', 'error'] as const)
    jest.spyOn(console, method).mockImplementation((text: string) => void said.push(`${method}: ${text}`));
});
afterEach(async () => {
  jest.restoreAllMocks();
  said.splice(0);
  await rm(folder, { recursive: true });
});

async function check(text: string): Promise<number> {
  const file = join(folder, 'platform.yaml');
  await writeFile(file, text);
  return await checkConfig(file);
}

const head = 'apiVersion: config.platform.io/v1alpha1\nkind: PlatformConfiguration\n';

describe('a configuration', () => {
  test('that is valid is said to be', async () => {
    expect(await check(`${head}authentication: {issuer: "https://platform.example"}\n`)).toBe(0);
    expect(said).toEqual([`log: ${join(folder, 'platform.yaml')} is valid`]);
  });

  test('that is not has every problem on a line of its own, with its path', async () => {
    expect(
      await check(`${head}authentication: {issuer: "http://x", accessTokenMaxAge: soon}\ncache: {idle: never}\n`),
    ).toBe(1);
    for (const path of ['authentication.issuer', 'authentication.accessTokenMaxAge', 'cache.idle'])
      expect(said.filter((line) => line.startsWith('error: ') && line.includes(path))).toHaveLength(1);
  });

  test.each(['{', '', '- a', head.replace('Platform', 'Other')])('that is none is refused: %j', async (text) => {
    expect(await check(text)).toBe(1);
    expect(said).not.toEqual([]);
  });

  test('that cannot be read, or is not named, is a wrong command line', async () => {
    expect(await checkConfig(join(folder, 'nowhere.yaml'))).toBe(2);
    expect(await checkConfig(undefined)).toBe(2);
    expect(said).toEqual([expect.stringContaining('ENOENT'), expect.stringContaining('usage:')]);
  });
});
