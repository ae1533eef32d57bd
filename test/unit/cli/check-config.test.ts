import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { checkConfig } from '../../../src/cli/check-config.ts';
import { UsageError } from '../../../src/config/flags.ts';

let folder = '';
const printed: string[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'platform-apiserver-cli-'));
  for (const method of ['log', 'error'] as const)
    jest.spyOn(console, method).mockImplementation((text: string) => void printed.push(`${method}: ${text}`));
});
afterEach(async () => {
  jest.restoreAllMocks();
  printed.splice(0);
  await rm(folder, { recursive: true });
});

async function check(text: string): Promise<number> {
  const file = join(folder, 'platform.yaml');
  await writeFile(file, text);
  return await checkConfig([file]);
}

const head = 'apiVersion: config.platform.io/v1alpha1\nkind: PlatformConfiguration\n';

describe('check-config with a configuration', () => {
  test('check-config confirms a valid configuration', async () => {
    expect(await check(`${head}authentication: {issuer: "https://platform.example"}\n`)).toBe(0);
    expect(printed).toEqual([`log: ${join(folder, 'platform.yaml')} is valid`]);
  });

  test('check-config prints every problem of an invalid configuration on its own line, with its path', async () => {
    expect(
      await check(`${head}authentication: {issuer: "http://x", accessTokenMaxAge: soon}\ncache: {idle: never}\n`),
    ).toBe(1);
    for (const path of ['authentication.issuer', 'authentication.accessTokenMaxAge', 'cache.idle'])
      expect(printed.filter((line) => line.startsWith('error: ') && line.includes(path))).toHaveLength(1);
  });

  test.each(['{', '', '- a', head.replace('Platform', 'Other')])(
    'check-config rejects a file that is not a PlatformConfiguration: %j',
    async (text) => {
      expect(await check(text)).toBe(1);
      expect(printed).not.toEqual([]);
    },
  );

  test('check-config reads a configuration from standard input for the file name "-"', async () => {
    expect(await checkConfig(['-'], Readable.from([Buffer.from(`${head}authentication: {issuer: x}\n`)]))).toBe(1);
    expect(printed).toEqual([expect.stringContaining('standard input: authentication.issuer: ')]);
  });

  test('check-config reports the name of a file that cannot be read', async () => {
    expect(await checkConfig([join(folder, 'nowhere.yaml')])).toBe(2);
    expect(printed).toEqual([
      `error: check-config: cannot read ${join(folder, 'nowhere.yaml')}: no such file or directory`,
    ]);
  });

  test.each([[[]], [['a', 'b']], [['--nonsense']], [['--nonsense', 'a']]])(
    'check-config rejects the arguments %j, since it requires exactly one file',
    async (args) => {
      await expect(checkConfig(args)).rejects.toThrow(UsageError);
    },
  );
});

const configMap = (data: unknown): string => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data });

describe('check-config with a ConfigMap', () => {
  test.each([
    ['valid', 'https://platform.example', 0, 'is valid'],
    ['invalid', 'http://platform.example', 1, 'authentication.issuer: '],
  ])('check-config reports the configuration in a ConfigMap as %s', async (_, issuer, code, word) => {
    expect(await check(configMap({ 'platform.yaml': `${head}authentication: {issuer: "${issuer}"}\n` }))).toBe(code);
    expect(printed).toEqual([expect.stringContaining(word)]);
  });

  test('check-config reports the position of broken YAML inside a ConfigMap', async () => {
    expect(await check(configMap({ 'platform.yaml': `${head}authentication: [\n` }))).toBe(1);
    expect(printed).toEqual([expect.stringContaining("data['platform.yaml'], line 4, column 1: is not valid YAML: ")]);
  });

  test('check-config reports the position of broken YAML in the file, even after other documents', async () => {
    expect(await check('# Source: a\na: 1\n---\nb: 1\n--- # Source: c\nkind: ConfigMap\ndata: "\n')).toBe(1);
    expect(printed).toEqual([expect.stringContaining('platform.yaml: line 8, column 1: is not valid YAML: ')]);
  });

  test('check-config finds the ConfigMap among other objects, as "helm template" prints them', async () => {
    const wrong = `${head}authentication: {issuer: "http://platform.example"}\n`;
    const objects = [{ kind: 'ServiceAccount' }, { kind: 'ConfigMap', data: { other: 'a' } }].map((one) =>
      JSON.stringify(one),
    );
    const all = [...objects, configMap({ 'platform.yaml': wrong }), '# no object', '{}'];
    expect(await check(`---\n# Source: a\n${all.join('\n---\n# Source: b\n')}\n`)).toBe(1);
    expect(printed).toEqual([expect.stringContaining('authentication.issuer: ')]);
  });

  test.each([[{}], [undefined], [null], [{ 'platform.yaml': 1 }], [{ 'other.yaml': head }]])(
    'check-config rejects a ConfigMap without a configuration, with an error of one sentence: %j',
    async (data) => {
      expect(await check(configMap(data))).toBe(1);
      expect(printed).toEqual([
        expect.stringMatching(/is not a cluster configuration.*PlatformConfiguration.*platform\.yaml/),
      ]);
    },
  );
});

describe('check-config with another file', () => {
  test.each([
    ['Helm values', 'replicaCount: 2\nconfig: {authentication: {issuer: ""}}\nimage: {tag: x}\n'],
    ['another object', 'apiVersion: v1\nkind: Secret\ndata: {platform.yaml: eA==}\n'],
  ])(
    'check-config rejects a file of another kind with an error of one sentence that names the expected content: %s',
    async (_, text) => {
      expect(await check(text)).toBe(1);
      expect(printed).toEqual([
        expect.stringMatching(/is not a cluster configuration.*PlatformConfiguration.*platform\.yaml/),
      ]);
    },
  );

  test.each(['---\n', '# comment\n---\n'])('check-config accepts a configuration after %j', async (start) => {
    expect(await check(`${start}${head}authentication: {issuer: "https://platform.example"}\n`)).toBe(0);
  });

  test('check-config reports the problems of a configuration that lacks only its kind', async () => {
    expect(await check('authentication: {issuer: x}\n')).toBe(1);
    for (const path of ['apiVersion', 'kind', 'authentication.issuer'])
      expect(printed.filter((line) => line.includes(`: ${path}: `))).toHaveLength(1);
  });
});
