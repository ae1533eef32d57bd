/** The examples of docs/api.md, as a reader pastes them. */
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute } from '../../hack/cluster/exec.ts';
import { gateway } from './lab/http.ts';
import { adminToken } from './lab/login.ts';

const text = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8');
const [setUp = '', ...examples] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = ''], index) =>
  index === 0 ? [block] : block.trim().split('\n'),
);

describe('docs/api.md', () => {
  test('has examples', () => {
    expect(examples.length).toBeGreaterThan(10);
  });

  test.each(['true', ...examples])('%s', async (example) => {
    const env = { BASE_URL: gateway(), TOKEN: await adminToken() };
    const { code, stdout, stderr } = await execute('bash', ['-eu', '-c', `${setUp}\n${example}`], { env });
    expect({ code, stderr, stdout }).toMatchObject({ code: 0, stderr: '' });
    expect(stdout).toContain('"kind":');
  });
});
