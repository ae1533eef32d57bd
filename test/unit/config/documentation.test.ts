import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { flagsTable } from '../../../src/config/flags.ts';
import { parseConfiguration } from '../../../src/config/parse.ts';

const file = new URL('../../../docs/reference/configuration.md', import.meta.url);

const [minimal = '', ...examples] = [...readFileSync(file, 'utf8').matchAll(/```yaml\n(.*?)```/gs)].map(
  ([, example = '']) => example,
);

test('the smallest configuration in the configuration reference is valid', () => {
  expect(parseConfiguration(minimal)).toMatchObject({ ok: true });
});

test.each(examples)('every example in the configuration reference is valid: %j', (example) => {
  const base = parse(minimal) as { authentication: object };
  const sections = parse(example) as { authentication?: object };
  const authentication = { ...base.authentication, ...sections.authentication };
  expect(parseConfiguration(stringify({ ...base, ...sections, authentication }))).toMatchObject({ ok: true });
});

test('the command line reference lists every flag of the server', () => {
  const page = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8');
  const [, flags = ''] = page.split('\n## Flags of the server\n');
  expect([...flags.matchAll(/^\| `(--[a-z-]+)`/gm)].map(([, flag]) => flag)).toEqual(
    flagsTable().map(([flag]) => flag.replace(/=.*/, '')),
  );
});
