/**
 * Schemathesis sends valid and invalid requests for the description: no response may be a 5xx or undocumented. FUZZ is
 * the number of cases per operation.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { execute } from '../../hack/cluster/exec.ts';
import { obtainPythonPackages } from '../labs/integration/clients.ts';
import { gateway } from '../labs/integration/http.ts';
import { get, remove, type KubeList } from '../labs/integration/kube.ts';
import { foundPath, lab } from '../labs/integration/lab.ts';
import { adminToken, login } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { createUserWithPassword, removeUser, userPath, usersPath } from '../labs/integration/user-objects.ts';

const configuration = join(import.meta.dirname, '../clients/schemathesis');
const long = process.env['FUZZ'];
/** Maximum duration of the run for one caller in milliseconds. */
const timeout = long === undefined ? 300_000 : 7_200_000;
const rightless = 'rightless';
/** Users whom the requests must not change. */
const others = ['admin', 'alice', 'bob', 'carol', 'dave', rightless];

let packages: string;
let before: ReadonlySet<string>;

const users = async (): Promise<string[]> =>
  (await get<KubeList>(usersPath)).items.map(({ metadata: { name } }) => name);

beforeAll(async () => {
  packages = foundPath(await obtainPythonPackages('schemathesis'));
  before = new Set(await users());
  await createUserWithPassword('victim');
  await createUserWithPassword(rightless);
}, 300_000);
afterAll(async () => {
  for (const name of await users()) if (!before.has(name)) await remove(userPath(encodeURIComponent(name)));
  await removeUser(rightless);
}, 120_000);

/** Runs Schemathesis and returns its report; findings do not throw. */
async function fuzz(
  token: string | undefined,
  phases: readonly string[],
  cases: number,
): Promise<{ readonly code: number; readonly output: string }> {
  const cwd = mkdtempSync(join(lab().dir, 'fuzz-'));
  const header = token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`];
  const url = `${gateway()}/swagger/platform.v3.json`;
  const options = ['--checks', 'all', '--no-color', '--phases', phases.join(','), '--max-examples', long ?? `${cases}`];
  // Without a budget for new cases, every run sends the same requests.
  const seed = long === undefined ? ['--seed', '1'] : [];
  const config = ['--config-file', join(configuration, 'schemathesis.toml')];
  const args = ['-m', 'schemathesis.cli', ...config, 'run', url, ...options, ...seed, ...header];
  const env = {
    PYTHONPATH: packages,
    PYTHONDONTWRITEBYTECODE: '1',
    SCHEMATHESIS_HOOKS: join(configuration, 'hooks.py'),
    PROTECTED: others.join(','),
  };
  const { code, stdout, stderr } = await execute('python3', args, { cwd, env, timeout: timeout });
  return { code, output: `${stdout}${stderr}`.slice(-20_000) };
}

/** Phases of a run. With a short budget, only the administrator sends edge cases, and other callers random requests. */
const everything = ['coverage', 'fuzzing', 'stateful'];
const edges = long === undefined ? ['coverage'] : everything;
const some = long === undefined ? ['fuzzing'] : everything;

const rightlessToken = async (): Promise<string> => (await login(rightless, gateway(), passwords.alice)).access_token;

describe('responses conform to the OpenAPI description', () => {
  test.each<[string, () => Promise<string | undefined>, readonly string[], number]>([
    ['the administrator', adminToken, edges, 1],
    ['a user without rights', rightlessToken, some, 2],
    ['an anonymous caller', async () => undefined, some, 2],
  ])(
    'responses conform to the OpenAPI description for %s',
    async (_, token, phases, cases) => {
      const { code, output } = await fuzz(await token(), phases, cases);
      expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
      expect(Number(/(\d+) generated/.exec(output)?.[1])).toBeGreaterThan(100);
    },
    timeout,
  );
});
