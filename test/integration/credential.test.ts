/** kubectl's credential plugin: login with a browser on another device and with a password, refresh, logout. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
import { inTerminal } from '../labs/terminal.ts';

const main = join(import.meta.dirname, '../../dist/main.js');
const whoami = '/kapis/iam.platform.io/v1alpha2/whoami';

/** A home directory for each test, in which the plugin stores its tokens. */
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

/** Runs kubectl against the server's own TLS listener. */
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
  // Another kubectl may be reading the file, so an existing file is not overwritten.
  if (!existsSync(kubeconfig)) writeFileSync(kubeconfig, stringify(document));
  return execute(lab().kubectl, args, { env: { KUBECONFIG: kubeconfig, HOME: home }, timeout: 60_000 });
}

describe('a login with a browser on another device', () => {
  test('a login with a browser on another device waits until the device is authorized, and stores the tokens in private files', async () => {
    const file = join(home, 'output');
    const [first = '', ...rest] = [...leash, ...inTerminal([process.execPath, main, 'credential', ...flags()], file)];
    const child = spawn(first, rest, { env: { ...process.env, HOME: home }, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    let printed = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      printed += String(chunk);
      const [, address] = /Open (\S+)[^]*\n[^]*\n/.exec(printed) ?? [];
      if (address === undefined) continue;
      await visit(address);
      break;
    }
    expect(await exited).toEqual([0, null]);
    const token = tokenOf(readFileSync(file, 'utf8'));
    expect(decodeToken(token).claims).toMatchObject({ username: 'admin', client_id: 'platform-cli' });
    expect(statSync(cacheFolder()).mode & 0o777).toBe(0o700);
    expect(statSync(cacheFile()).mode & 0o777).toBe(0o600);
    // No further login is needed.
    expect(tokenOf((await credential(flags())).stdout)).toBe(token);
  });
});

describe('kubectl', () => {
  test('kubectl fails before the first login, and acts as the user after the login', async () => {
    const before = await kubectl(['get', '--raw', whoami]);
    expect({ code: before.code, stderr: before.stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        `login required, but there is no terminal; first run this in a terminal: platform-apiserver credential --server=${secureGateway()} --ca-file=FILE --login=password --username=admin, where FILE contains the CA of the kubeconfig's cluster: kubectl `,
      ),
    });
    const [, extract = ''] = /where FILE contains .*?: (kubectl .*) >FILE\n/.exec(before.stderr) ?? [];
    const env = { KUBECONFIG: join(home, 'config'), PATH: `${dirname(lab().kubectl)}:${process.env['PATH'] ?? ''}` };
    const authority = await output('bash', ['--norc', '-c', extract], { env });
    expect(authority.trim()).toBe(readFileSync(lab().authorityFile, 'utf8').trim());
    await logInWithPassword();
    const { code, stdout, stderr } = await kubectl(['get', '--raw', whoami]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ status: { userInfo: { username: 'admin' } } });
  });

  test('kubectl uses refreshed tokens, even when several processes run in parallel', async () => {
    await logInWithPassword();
    const first = cached();
    age();
    const responses = await Promise.all([1, 2, 3].map(() => kubectl(['get', '--raw', whoami])));
    expect(responses.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      [1, 2, 3].map(() => ({ code: 0, stderr: '' })),
    );
    const second = cached();
    expect(second.refreshToken).not.toBe(first.refreshToken);
    age();
    expect((await kubectl(['get', '--raw', whoami])).code).toBe(0);
    remember(second.refreshToken, cached().refreshToken);
  });

  const longAgo = Date.now() - 3_600_000;

  test('kubectl requires a new login if the session is revoked before the token expires', async () => {
    await logInWithPassword();
    const { accessToken, refreshToken } = cached();
    remember(refreshToken);
    const sessions = `${secureGateway()}/kapis/iam.platform.io/v1alpha2/users/~/sessions`;
    const { sid } = decodeToken(accessToken).claims;
    expect(await call(`${sessions}/${String(sid)}`, { method: 'DELETE', token: accessToken })).toMatchObject({
      status: 200,
    });
    age({ obtainedAt: longAgo });
    expect((await kubectl(['get', '--raw', whoami])).stderr).toContain('login required');
    await logInWithPassword();
  });

  test('kubectl uses a valid token while the platform is unavailable', async () => {
    const [server, username] = ['https://127.0.0.1:9', 'admin'];
    const tokens = { accessToken: 'a.b.c', refreshToken: 'r', obtainedAt: longAgo, expiresAt: Date.now() + 600_000 };
    await writeTokens(cacheFileOf([server, 'password', username, ''], home), tokens);
    const args = [`--server=${server}`, '--login=password', `--username=${username}`];
    expect(tokenOf((await credential(args)).stdout)).toBe('a.b.c');
  });

  test('kubectl reports a revoked session', async () => {
    await logInWithPassword();
    const { refreshToken, accessToken } = cached();
    expect(await credential([...flags(), '--login=password', '--username=admin', '--logout'])).toMatchObject({
      code: 0,
    });
    expect(readdirSync(cacheFolder())).toEqual([]);
    expect((await call(`${secureGateway()}${whoami}`, { token: accessToken })).status).toBe(401);
    const again = await credential([...flags(), '--login=password', '--username=admin', '--logout']);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('is cached for these flags; use the same --login, --username and --audience');
    writeFileSync(join(cacheFolder(), 'x'), '');
    remember(refreshToken);
    expect((await kubectl(['get', '--raw', whoami])).code).toBe(1);
  });
});

test('the credential plugin reports a missing CA', async () => {
  const { code, stderr } = await credential(
    [`--server=${secureGateway()}`, '--login=password', '--username=admin'],
    'secret\n',
  );
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('set --ca-file to the CA') });
});

test('the credential plugin names the page where a user must change the password', async () => {
  await createUserWithPassword('quinn', { passwordChangeRequired: true });
  const { code, stdout, stderr } = await credential(
    [...flags(), '--login=password', '--username=quinn'],
    `${passwords.alice}\n`,
  );
  await removeUser('quinn');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`change your password in a browser first: ${secureGateway()}/oauth/login`);
});

test('a token that the credential plugin requests for kube-apiserver is valid only at kube-apiserver', async () => {
  const token = await logInWithPassword(['--audience=kubernetes']);
  expect(decodeToken(token).claims).toMatchObject({ aud: 'kubernetes', username: 'admin' });
  expect((await call(`${secureGateway()}${whoami}`, { token })).status).toBe(401);
});

test.each<[string, readonly string[], number, RegExp]>([
  ['a wrong password', ['--login=password', '--username=admin'], 1, /incorrect username or password/],
  ['a login without a username', ['--login=password'], 2, /--username/],
  ['an unknown login method', ['--login=smoke'], 2, /device or password/],
  ['a server without TLS', ['--server=http://127.0.0.1'], 2, /https URL/],
  [
    'a server that does not respond',
    ['--server=https://127.0.0.1:1', '--login=password', '--username=a'],
    1,
    /ECONNREFUSED/,
  ],
  ['an unexpected argument', ['x'], 2, /./],
  ['a CA file that does not exist', ['--ca-file=/nowhere'], 1, /--ca-file: cannot read \/nowhere: no such file/],
  [
    'a device login without a terminal',
    [],
    1,
    /no terminal; first run this in a terminal: platform-apiserver credential /,
  ],
])('the credential plugin exits with an error message for %s', async (_, args, code, message) => {
  const response = await credential([...flags(), ...args], 'wrong\n');
  expect({ code: response.code, stdout: response.stdout }).toEqual({ code, stdout: '' });
  expect(response.stderr).toMatch(message);
});

test.each([
  ['input that is not JSON', 'x', /not JSON/],
  [
    'input of another version',
    '{"apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}}',
    /client.authentication.k8s.io\/v1/,
  ],
  [
    'input without a cluster',
    '{"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":true}}',
    /provideClusterInfo/,
  ],
])('the credential plugin rejects %s from kubectl and reports the expected input', async (_, info, message) => {
  const { code, stderr } = await credential([], '', { KUBERNETES_EXEC_INFO: info });
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
