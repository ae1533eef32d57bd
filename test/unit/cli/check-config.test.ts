import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { checkConfig } from '../../../src/cli/check-config.ts';
import { UsageError } from '../../../src/config/flags.ts';

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
  return await checkConfig([file]);
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

  test('is read from standard input when it is named "-"', async () => {
    expect(await checkConfig(['-'], Readable.from([Buffer.from(`${head}authentication: {issuer: x}\n`)]))).toBe(1);
    expect(said).toEqual([expect.stringContaining('standard input: authentication.issuer: ')]);
  });

  test('that cannot be read is told with its name', async () => {
    expect(await checkConfig([join(folder, 'nowhere.yaml')])).toBe(2);
    expect(said).toEqual([expect.stringContaining('ENOENT')]);
  });

  test.each([[[]], [['a', 'b']], [['--nonsense']], [['--nonsense', 'a']]])(
    'is one file, and %j is a wrong command line',
    async (args) => {
      await expect(checkConfig(args)).rejects.toThrow(UsageError);
    },
  );
});

const configMap = (data: unknown): string => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data });

describe('a ConfigMap', () => {
  test.each([
    ['valid', 'https://platform.example', 0, 'is valid'],
    ['wrong', 'http://platform.example', 1, 'authentication.issuer: '],
  ])('is as %s as the configuration that it holds', async (_, issuer, code, word) => {
    expect(await check(configMap({ 'platform.yaml': `${head}authentication: {issuer: "${issuer}"}\n` }))).toBe(code);
    expect(said).toEqual([expect.stringContaining(word)]);
  });

  test('is found among other objects, as "helm template" prints them', async () => {
    const wrong = `${head}authentication: {issuer: "http://platform.example"}\n`;
    const objects = [{ kind: 'ServiceAccount' }, { kind: 'ConfigMap', data: { other: 'a' } }].map((one) =>
      JSON.stringify(one),
    );
    const all = [...objects, configMap({ 'platform.yaml': wrong }), '# no object', '{}'];
    expect(await check(`---\n# Source: a\n${all.join('\n---\n# Source: b\n')}\n`)).toBe(1);
    expect(said).toEqual([expect.stringContaining('authentication.issuer: ')]);
  });

  test.each([[{}], [undefined], [null], [{ 'platform.yaml': 1 }], [{ 'other.yaml': head }]])(
    'that holds none is refused in one sentence: %j',
    async (data) => {
      expect(await check(configMap(data))).toBe(1);
      expect(said).toEqual([
        expect.stringMatching(/is no cluster configuration.*PlatformConfiguration.*platform\.yaml/),
      ]);
    },
  );
});

describe('something else', () => {
  test.each([
    ["Helm's values", 'replicaCount: 2\nconfig: {authentication: {issuer: ""}}\nimage: {tag: x}\n'],
    ['another object', 'apiVersion: v1\nkind: Secret\ndata: {platform.yaml: eA==}\n'],
  ])('is refused in one sentence that says what is expected: %s', async (_, text) => {
    expect(await check(text)).toBe(1);
    expect(said).toEqual([expect.stringMatching(/is no cluster configuration.*PlatformConfiguration.*platform\.yaml/)]);
  });

  test('is not what only forgot its kind', async () => {
    expect(await check('authentication: {issuer: x}\n')).toBe(1);
    for (const path of ['apiVersion', 'kind', 'authentication.issuer'])
      expect(said.filter((line) => line.includes(`: ${path}: `))).toHaveLength(1);
  });
});
