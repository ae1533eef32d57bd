/** The examples of the documents, as a reader pastes them. */
import { describe, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execute } from '../../hack/cluster/exec.ts';
import { eventually } from './lab/eventually.ts';
import { call, gateway, nodesPath } from './lab/http.ts';
import { decodeToken } from './lab/jwt.ts';
import { lab } from './lab/lab.ts';
import { adminToken, login } from './lab/login.ts';
import { passwords } from './lab/people.ts';
import { createUserWithPassword, loginStatuses, removeUser } from './lab/user-objects.ts';

const blocksOf = (file: string): string[] => {
  const text = readFileSync(join(import.meta.dirname, '../../docs', file), 'utf8');
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
};
const [setUp = '', ...blocks] = blocksOf('api.md');
const examples = blocks.flatMap((block) => block.trim().split('\n'));

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

describe('docs/security.md', () => {
  test('restores accounts: who had a password has it again, and no session', async () => {
    const [backup = '', restore = ''] = blocksOf('security.md');
    const cwd = mkdtempSync(join(lab().dir, 'backup-'));
    const run = async (script: string): Promise<void> => {
      const env = {
        KUBECONFIG: lab().kubeconfig,
        HOME: cwd,
        PATH: `${dirname(lab().kubectl)}:${process.env['PATH'] ?? ''}`,
      };
      const { code, stderr } = await execute('bash', ['-euo', 'pipefail', '-c', `cd ${cwd}\n${script}`], { env });
      expect({ code, stderr }).toMatchObject({ code: 0 });
    };
    await createUserWithPassword('restored', { groups: ['keepers'] });
    const { access_token: before } = await login('restored', gateway(), passwords.alice);
    await run(backup);
    await removeUser('restored');
    await eventually('the user is gone', async () => {
      expect(await loginStatuses('restored')).toEqual([400, 400]);
    });
    await run(restore);
    await eventually('the user is back', async () => {
      const { access_token: token } = await login('restored', gateway(), passwords.alice);
      expect(decodeToken(token).claims).toMatchObject({ groups: ['keepers'] });
    });
    expect((await call(`${gateway()}${nodesPath}`, { token: before })).status).toBe(401);
    await removeUser('restored');
  });
});
