import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { parseConfiguration } from '../../../src/config/parse.ts';

const file = new URL('../../../docs/configuration.md', import.meta.url);

test('the example of the reference is a configuration', () => {
  const [, example = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(file, 'utf8')) ?? [];
  expect(parseConfiguration(example)).toMatchObject({ ok: true });
});
