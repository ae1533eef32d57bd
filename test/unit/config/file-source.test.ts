import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ConfigurationFile } from '../../../src/config/file-source.ts';
import { LiveConfiguration } from '../../../src/config/live.ts';
import { createLogger } from '../../../src/runtime/logger.ts';

const yaml = `apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: https://platform.example
`;

let dir: string;
let file: string;
let live: LiveConfiguration;
let source: ConfigurationFile;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'configuration-'));
  file = join(dir, 'platform.yaml');
  live = new LiveConfiguration();
  source = new ConfigurationFile({ file, live, log: createLogger({ silent: true }) });
});
afterEach(async () => {
  source.stop();
  await rm(dir, { recursive: true });
});

test('a configuration file is in effect after startup', async () => {
  await writeFile(file, yaml);
  await source.start();
  expect(live.value.authentication.issuer).toBe('https://platform.example');
});

test('a new version of the configuration file takes effect while the server runs', async () => {
  await writeFile(file, yaml);
  await source.start();
  const replaced = new Promise<string>((resolve) => {
    live.subscribe(({ authentication: { issuer } }) => {
      if (issuer !== 'https://platform.example') resolve(issuer);
    });
  });
  await writeFile(file, yaml.replace('platform.example', 'other.example'));
  expect(await replaced).toBe('https://other.example');
});

test('startup fails with an error that names the flag, the file and the problems if the configuration is invalid', async () => {
  await writeFile(file, yaml.replace('PlatformConfiguration', 'Other'));
  await expect(source.start()).rejects.toThrow(`--config: ${file} is invalid:\nkind`);
});

test('startup fails if the configuration file does not exist', async () => {
  await expect(source.start()).rejects.toThrow(`--config: cannot read ${file}: no such file or directory`);
});
