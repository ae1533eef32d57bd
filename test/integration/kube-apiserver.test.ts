/**
 * A kube-apiserver that trusts this server as docs/guides/kube-apiserver.md describes: by its token webhook, and as an issuer
 * of JSON Web Tokens.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { startControlPlane, type ControlPlane } from '../../hack/cluster/control-plane.ts';
import { execute, output, type Executed } from '../../hack/cluster/exec.ts';
import { configure } from '../labs/integration/configure.ts';
import { blocksIn } from '../labs/integration/documents.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, secureGateway } from '../labs/integration/http.ts';
import { kubectl } from '../labs/integration/kubectl.ts';
import { lab } from '../labs/integration/lab.ts';
import { passwords } from '../labs/integration/people.ts';
import { encode, passwordForm, platform, tokens } from '../labs/integration/login.ts';

const client = { client_id: 'kube-apiserver', client_secret: 'asking6610for4tokens' };
/** Suffix of usernames, which shows how a token was authenticated. */
const prefix = 'jwt:';
const dir = mkdtempSync(join(tmpdir(), 'platform-apiserver-trusting-'));
let trusting: ControlPlane;
let restore: () => Promise<void>;

const authenticationConfiguration = (issuer: string): object => ({
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthenticationConfiguration',
  jwt: [
    {
      issuer: { url: issuer, audiences: ['kubernetes'], certificateAuthority: lab().authority },
      claimMappings: {
        username: { claim: 'username', prefix },
        groups: { claim: 'groups', prefix },
        uid: { claim: 'sub' },
      },
      userValidationRules: [{ expression: "!user.username.startsWith('system:')", message: 'no system: name' }],
    },
  ],
});

const webhookConfiguration = (issuer: string): object => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [
    { name: 'p', cluster: { server: `${issuer}/oauth/authenticate`, 'certificate-authority': lab().authorityFile } },
  ],
  users: [{ name: 'p', user: { username: client.client_id, password: client.client_secret } }],
  contexts: [{ name: 'p', context: { cluster: 'p', user: 'p' } }],
  'current-context': 'p',
});

beforeAll(async () => {
  const issuer = secureGateway();
  restore = await configure(({ authentication }) => {
    authentication['issuer'] = issuer;
    authentication.clients.push({
      name: client.client_id,
      secret: client.client_secret,
      grantTypes: [],
      introspection: true,
    });
  });
  const file = (name: string, content: object): string => {
    writeFileSync(join(dir, name), stringify(content), { mode: 0o600 });
    return join(dir, name);
  };
  trusting = await startControlPlane({
    dir: join(dir, 'cluster'),
    withoutKwok: true,
    apiserverFlags: [
      `--authentication-config=${file('authentication.yaml', authenticationConfiguration(issuer))}`,
      `--authentication-token-webhook-config-file=${file('webhook.yaml', webhookConfiguration(issuer))}`,
      '--authentication-token-webhook-version=v1',
      '--authentication-token-webhook-cache-ttl=1s',
    ],
  });
  const kubeconfig = parse(await readFile(trusting.kubeconfig, 'utf8')) as { users: { user: object }[] };
  file('nobody.kubeconfig', { ...kubeconfig, users: kubeconfig.users.map((user) => ({ ...user, user: {} })) });
});
afterAll(async () => {
  await trusting.stop();
  rmSync(dir, { recursive: true });
  await restore();
});

interface UserInfo {
  readonly username: string;
  readonly groups: readonly string[];
}

/** Returns the user whom kube-apiserver authenticates by this token. Throws if there is none. */
async function whoami(token: string): Promise<UserInfo> {
  const where = ['--kubeconfig', join(dir, 'nobody.kubeconfig'), '--token', token];
  const { code, stdout, stderr } = await kubectl(...where, 'auth', 'whoami', '-o', 'json');
  if (code !== 0) throw new Error(stderr);
  return (JSON.parse(stdout) as { status: { userInfo: UserInfo } }).status.userInfo;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Record<string, string> }[];
  readonly users: readonly { readonly user: { readonly exec: { command: string; args: readonly string[] } } }[];
}

describe('the kubeconfigs of docs/guides/kubectl.md', () => {
  const [first = '', second = ''] = blocksIn('guides/kubectl.md', 'yaml');
  const passwordOfAlice = ['--login=password', '--username=alice'];
  const main = join(import.meta.dirname, '../../dist/main.js');

  /** Replaces the documented names by those of the test; a user has logged in before. */
  async function prepared(text: string, toPlatform: boolean): Promise<(...args: string[]) => Promise<Executed>> {
    const home = mkdtempSync(join(dir, 'home-'));
    const kubeconfig = parse(text) as Kubeconfig;
    const cluster = toPlatform
      ? { server: secureGateway(), 'certificate-authority': lab().authorityFile }
      : (parse(await readFile(trusting.kubeconfig, 'utf8')) as Kubeconfig).clusters[0]?.cluster;
    const here: Readonly<Record<string, string>> = {
      '--server=https://platform.example.com': `--server=${secureGateway()}`,
      '--ca-file=/home/me/.kube/platform-ca.crt': `--ca-file=${lab().authorityFile}`,
    };
    const env = { HOME: home, KUBECONFIG: join(home, 'config') };
    for (const { user } of kubeconfig.users) {
      const args = [...user.exec.args.map((arg) => here[arg] ?? arg), ...passwordOfAlice];
      const flags = toPlatform ? Object.values(here) : [];
      await output(process.execPath, [main, ...args, ...flags], { env, input: `${passwords.alice}\n` });
      Object.assign(user.exec, { command: process.execPath, args: [main, ...args] });
    }
    const clusters = kubeconfig.clusters.map((one) => ({ ...one, cluster }));
    writeFileSync(env.KUBECONFIG, stringify({ ...kubeconfig, clusters }));
    return (...args) => execute(lab().kubectl, args, { env, timeout: 60_000 });
  }

  test('give access to the platform only, for the first one', async () => {
    const run = await prepared(first, true);
    const { code, stdout } = await run('get', '--raw', '/kapis/iam.platform.io/v1alpha2/whoami');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"username":"alice"') });
    expect((await run('get', 'pods')).code).toBe(1);
  });

  test('give access to kube-apiserver, for the second one', async () => {
    const run = await prepared(second, false);
    await eventually('kube-apiserver has read the published keys', async () => {
      expect(await run('auth', 'whoami')).toMatchObject({ code: 0, stdout: expect.stringContaining(`${prefix}alice`) });
    });
  });
});

const refused = /Unauthorized|must be logged in/;

describe('a kube-apiserver that trusts the platform', () => {
  test('accepts any access token by the webhook until its session is revoked', async () => {
    const { access_token: token } = await tokens(passwordForm('alice'));
    const user = await whoami(token);
    expect(user.username).toBe('alice');
    expect(user.groups.toSorted()).toEqual(['keepers', 'staff', 'system:authenticated']);
    await call(`${secureGateway(1)}/oauth/revoke`, {
      method: 'POST',
      body: encode({ token, ...platform }),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    await eventually(
      'kube-apiserver rejects the revoked token',
      async () => await expect(whoami(token)).rejects.toThrow(refused),
    );
  });

  test('verifies a token issued for it without the webhook', async () => {
    const { access_token: token, expires_in: life } = await tokens({
      ...passwordForm('alice'),
      audience: 'kubernetes',
    });
    expect(life).toBe(600);
    const user = await eventually('kube-apiserver has read the published keys', async () => {
      const found = await whoami(token);
      expect(found.username).toBe(`${prefix}alice`);
      return found;
    });
    expect(user.groups.toSorted()).toEqual([`${prefix}keepers`, `${prefix}staff`, 'system:authenticated']);
  });

  test('rejects any other token', async () => {
    const { refresh_token: token } = await tokens(passwordForm('alice'));
    await expect(whoami(token)).rejects.toThrow(refused);
  });
});
