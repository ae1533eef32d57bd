/** kubectl's credential plugin: logging in with a browser elsewhere and with a password, refreshing, logging out. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { execute, output, type Executed } from '../../hack/cluster/exec.ts';
import { stringify } from 'yaml';
import { leash } from '../../hack/run/server.ts';
import { cacheFile as cacheFileOf, writeTokens } from '../../src/cli/credential/token-cache.ts';
import { call, secureGateway } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import { lab } from '../labs/integration/lab.ts';
import { passwordOf } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { visit } from '../labs/integration/person.ts';
import { remember } from '../labs/integration/secrets.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

const main = join(import.meta.dirname, '../../dist/main.js');
const whoami = '/kapis/iam.platform.io/v1alpha2/whoami';

/** A home directory for each test: the plugin keeps its tokens there. */
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(lab().dir, 'home-'));
});

const flags = (): string[] => [`--server=${secureGateway()}`, `--ca-file=${lab().authorityFile}`];
const tokenOf = (printed: string): string => {
  const { status } = JSON.parse(printed) as { status: { token: string } };
  remember(status.token);
  return status.token;
};

const credential = (
  args: readonly string[],
  input = '',
  env: Readonly<Record<string, string>> = {},
): Promise<Executed> =>
  execute(process.execPath, [main, 'credential', ...args], { input, env: { HOME: home, ...env }, timeout: 60_000 });

const logInWithPassword = async (args: readonly string[] = []): Promise<string> => {
  const { code, stdout, stderr } = await credential(
    [...flags(), '--login=password', '--username=admin', ...args],
    `${passwordOf('admin')}\n`,
  );
  expect({ code, stderr: stderr.trim() }).toEqual({ code: 0, stderr: 'Password of admin:' });
  return tokenOf(stdout);
};

interface Cached {
  accessToken: string;
  refreshToken: string;
  obtainedAt: number;
  expiresAt: number;
}
const cacheFolder = (): string => join(home, '.kube/cache/platform-apiserver');
const cacheFile = (): string => join(cacheFolder(), readdirSync(cacheFolder())[0] ?? '');
const cached = (): Cached => JSON.parse(readFileSync(cacheFile(), 'utf8')) as Cached;
const age = (fields: Partial<Cached> = { expiresAt: 0 }): void =>
  writeFileSync(cacheFile(), JSON.stringify({ ...cached(), ...fields }));

/** kubectl, whose cluster is our own TLS listener. */
async function kubectl(args: readonly string[]): Promise<Executed> {
  const kubeconfig = join(home, 'config');
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: [main, 'credential', '--login=password', '--username=admin'],
    interactiveMode: 'IfAvailable',
    provideClusterInfo: true,
  };
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'platform', cluster: { server: secureGateway(), 'certificate-authority': lab().authorityFile } },
    ],
    users: [{ name: 'me', user: { exec } }],
    contexts: [{ name: 'platform', context: { cluster: 'platform', user: 'me' } }],
    'current-context': 'platform',
  };
  // Another kubectl may be reading it.
  if (!existsSync(kubeconfig)) writeFileSync(kubeconfig, stringify(document));
  return execute(lab().kubectl, args, { env: { KUBECONFIG: kubeconfig, HOME: home }, timeout: 60_000 });
}

describe('a login with a browser elsewhere', () => {
  test('waits until the device is let in, and keeps the tokens to itself', async () => {
    const [first = '', ...rest] = [...leash, process.execPath, main, 'credential', ...flags()];
    const child = spawn(first, rest, { env: { ...process.env, HOME: home }, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = text(child.stdout);
    let said = '';
    for await (const chunk of child.stderr.setEncoding('utf8')) {
      said += String(chunk);
      if (/shows \S+\n/.test(said)) break;
    }
    const [, address = ''] = /Open (\S+)/.exec(said) ?? [];
    await visit(address);
    const token = tokenOf(await printed);
    expect(decodeToken(token).claims).toMatchObject({ username: 'admin', client_id: 'platform-cli' });
    expect(statSync(cacheFolder()).mode & 0o777).toBe(0o700);
    expect(statSync(cacheFile()).mode & 0o777).toBe(0o600);
    if (child.exitCode === null) await once(child, 'exit');
    // Nobody is asked again.
    expect(tokenOf((await credential(flags())).stdout)).toBe(token);
  });
});

describe('kubectl', () => {
  test('says who is there, once somebody has logged in', async () => {
    const before = await kubectl(['get', '--raw', whoami]);
    expect({ code: before.code, stderr: before.stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        `nobody is there to log in: run in a terminal first: platform-apiserver credential --server=${secureGateway()} --ca-file=FILE --login=password --username=admin, where FILE has the CA of the kubeconfig's cluster: kubectl `,
      ),
    });
    const [, extract = ''] = /where FILE has .*?: (kubectl .*) >FILE\n/.exec(before.stderr) ?? [];
    const env = { KUBECONFIG: join(home, 'config'), PATH: `${dirname(lab().kubectl)}:${process.env['PATH'] ?? ''}` };
    const authority = await output('bash', ['--norc', '-c', extract], { env });
    expect(authority.trim()).toBe(readFileSync(lab().authorityFile, 'utf8').trim());
    await logInWithPassword();
    const { code, stdout, stderr } = await kubectl(['get', '--raw', whoami]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ status: { userInfo: { username: 'admin' } } });
  });

  test('goes on with refreshed tokens, also several at once', async () => {
    await logInWithPassword();
    const first = cached();
    age();
    const answers = await Promise.all([1, 2, 3].map(() => kubectl(['get', '--raw', whoami])));
    expect(answers.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      [1, 2, 3].map(() => ({ code: 0, stderr: '' })),
    );
    const second = cached();
    expect(second.refreshToken).not.toBe(first.refreshToken);
    age();
    expect((await kubectl(['get', '--raw', whoami])).code).toBe(0);
    remember(second.refreshToken, cached().refreshToken);
  });

  const longAgo = Date.now() - 3_600_000;

  test('has somebody log in anew where the session has ended meanwhile, though the token has not expired', async () => {
    await logInWithPassword();
    const { accessToken, refreshToken } = cached();
    remember(refreshToken);
    const sessions = `${secureGateway()}/kapis/iam.platform.io/v1alpha2/users/~/sessions`;
    const { sid } = decodeToken(accessToken).claims;
    expect(await call(`${sessions}/${String(sid)}`, { method: 'DELETE', token: accessToken })).toMatchObject({
      status: 200,
    });
    age({ obtainedAt: longAgo });
    expect((await kubectl(['get', '--raw', whoami])).stderr).toContain('nobody is there to log in');
    await logInWithPassword();
  });

  test('goes on with a token that is good while the platform is not to be reached', async () => {
    const [server, username] = ['https://127.0.0.1:9', 'admin'];
    const tokens = { accessToken: 'a.b.c', refreshToken: 'r', obtainedAt: longAgo, expiresAt: Date.now() + 600_000 };
    await writeTokens(cacheFileOf([server, 'password', username, ''], home), tokens);
    const args = [`--server=${server}`, '--login=password', `--username=${username}`];
    expect(tokenOf((await credential(args)).stdout)).toBe('a.b.c');
  });

  test('is told when the session has ended', async () => {
    await logInWithPassword();
    const { refreshToken, accessToken } = cached();
    expect(await credential([...flags(), '--login=password', '--username=admin', '--logout'])).toMatchObject({
      code: 0,
    });
    expect(readdirSync(cacheFolder())).toEqual([]);
    expect((await call(`${secureGateway()}${whoami}`, { token: accessToken })).status).toBe(401);
    writeFileSync(join(cacheFolder(), 'x'), '');
    remember(refreshToken);
    expect((await kubectl(['get', '--raw', whoami])).code).toBe(1);
  });
});

test('a CA that is not known is asked for', async () => {
  const { code, stderr } = await credential([`--server=${secureGateway()}`]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('is to be given by --ca-file') });
});

test('who must change the password is told where', async () => {
  await createUserWithPassword('quinn', { passwordChangeRequired: true });
  const { code, stdout, stderr } = await credential(
    [...flags(), '--login=password', '--username=quinn'],
    `${passwords.alice}\n`,
  );
  await removeUser('quinn');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`the password must be changed first, in a browser: ${secureGateway()}/oauth/login`);
});

test('a token for kube-apiserver is for it alone', async () => {
  const token = await logInWithPassword(['--audience=kubernetes']);
  expect(decodeToken(token).claims).toMatchObject({ aud: 'kubernetes', username: 'admin' });
  expect((await call(`${secureGateway()}${whoami}`, { token })).status).toBe(401);
});

test.each<[string, readonly string[], number, RegExp]>([
  ['a wrong password', ['--login=password', '--username=admin'], 1, /username or the password is wrong/],
  ['no username', ['--login=password'], 2, /--username/],
  ['another way to log in', ['--login=smoke'], 2, /device or password/],
  ['a server in the clear', ['--server=http://127.0.0.1'], 2, /https URL/],
  ['a server that does not answer', ['--server=https://127.0.0.1:1'], 1, /ECONNREFUSED/],
  ['an argument', ['x'], 2, /./],
])('%s is told', async (_, args, code, message) => {
  const answer = await credential([...flags(), ...args], 'wrong\n');
  expect({ code: answer.code, stdout: answer.stdout }).toEqual({ code, stdout: '' });
  expect(answer.stderr).toMatch(message);
});

test.each([
  ['no JSON', 'x', /no JSON/],
  [
    'another version',
    '{"apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}}',
    /client.authentication.k8s.io\/v1/,
  ],
  ['no cluster', '{"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":true}}', /provideClusterInfo/],
])('a kubectl that gives %s is told what it should give', async (_, info, message) => {
  const { code, stderr } = await credential([], '', { KUBERNETES_EXEC_INFO: info });
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
