/**
 * Two kube-apiservers that trust this server, with the configuration in docs/guides/kube-apiserver.md. The first uses
 * the token webhook, and trusts the issuer of this server for its own audience. The second uses no webhook, and trusts
 * the issuer for the audience of all access tokens.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { startControlPlane, type ControlPlane } from '../../hack/cluster/control-plane.ts';
import { execute, output, type Executed } from '../../hack/cluster/exec.ts';
import { configure, type Configuration } from '../labs/integration/configure.ts';
import { blocksIn } from '../labs/integration/documents.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import {
  create,
  createServiceAccount,
  releasePath,
  remove,
  removeServiceAccount,
  serviceAccountToken,
} from '../labs/integration/kube.ts';
import { kubectl } from '../labs/integration/kubectl.ts';
import { lab } from '../labs/integration/lab.ts';
import { encode, login, passwordForm, platform, tokens } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { visit } from '../labs/integration/person.ts';
import { remember } from '../labs/integration/secrets.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

type Authentication = Configuration['authentication'];

const secret = 'asking6610for4tokens';
const exchanger = { client_id: 'exchanger', client_secret: 'exchanging 3302 tokens' };
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const account = 'exchanged';
const newcomer = 'newcomer-elsewhere';
const dir = mkdtempSync(join(tmpdir(), 'platform-apiserver-trusting-'));
const [clientBlock = '', webhook = '', ofOwnAudience = '', ofIssuer = ''] = blocksIn(
  'guides/kube-apiserver.md',
  'yaml',
);

/** Writes a block of the page to a file with the values of the test, and returns the flags in its first line. */
function flagsOf(name: string, block: string): string[] {
  const file = join(dir, `${name}.yaml`);
  const authority = lab().authority.trim().split('\n');
  const text = block
    .replaceAll('https://platform.example.com', secureGateway())
    .replace('SECRET', secret)
    .replace('/etc/kubernetes/platform-ca.crt', lab().authorityFile)
    .replace(/^( +)-----BEGIN CERTIFICATE-----\n +…$/m, (_, indent: string) =>
      authority.map((line) => `${indent}${line}`).join('\n'),
    );
  writeFileSync(file, text, { mode: 0o600 });
  const flags = /^# (--.*)$/m.exec(block)?.[1] ?? '';
  return flags.split(' ').map((flag) => flag.replace('…', file));
}

/** Starts a control plane whose kube-apiserver has the flags of these blocks. */
async function startTrusting(name: string, blocks: readonly string[]): Promise<ControlPlane> {
  const flags = blocks.map((block, index) => flagsOf(`${name}-${index}`, block));
  const started = await startControlPlane({ dir: join(dir, name), withoutKwok: true, apiserverFlags: flags.flat() });
  const kubeconfig = parse(await readFile(started.kubeconfig, 'utf8')) as { users: { user: object }[] };
  const users = kubeconfig.users.map((user) => ({ ...user, user: {} }));
  writeFileSync(anonymous(started), stringify({ ...kubeconfig, users }), { mode: 0o600 });
  return started;
}

/** Path of the kubeconfig without a credential. */
const anonymous = ({ kubeconfig }: ControlPlane): string => `${kubeconfig}.anonymous`;

/** Uses the webhook of this server, and trusts this server as JWT issuer for the audience of kube-apiserver. */
let trusting: ControlPlane;
/** Trusts this server as JWT issuer for the audience of all access tokens, without the webhook. */
let trustingIssuer: ControlPlane;
let restore: () => Promise<void>;

beforeAll(async () => {
  await create(`${releasePath}/secrets`, { metadata: { name: 'kube-apiserver-webhook' }, stringData: { secret } });
  remember(secret, exchanger.client_secret);
  const { clients } = (parse(clientBlock) as { authentication: Pick<Authentication, 'clients'> }).authentication;
  restore = await configure(({ authentication }) => {
    authentication['issuer'] = secureGateway();
    authentication.clients.push(...clients, {
      name: exchanger.client_id,
      secret: exchanger.client_secret,
      grantTypes: [tokenExchange],
    });
  });
  await createServiceAccount(account);
  await createUserWithPassword(newcomer, { passwordChangeRequired: true });
  trusting = await startTrusting('trusting', [webhook, ofOwnAudience]);
  trustingIssuer = await startTrusting('trusting-issuer', [ofIssuer]);
});
afterAll(async () => {
  await Promise.all([trusting.stop(), trustingIssuer.stop()]);
  rmSync(dir, { recursive: true });
  await removeUser(newcomer);
  await removeServiceAccount(account);
  await restore();
  await remove(`${releasePath}/secrets/kube-apiserver-webhook`);
});

interface UserInfo {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Returns the user whom kube-apiserver authenticates by this token. Throws if there is none. */
async function whoami(token: string, at = trusting): Promise<UserInfo> {
  const args = ['--kubeconfig', anonymous(at), '--token', token, 'auth', 'whoami', '-o', 'json'];
  const { code, stdout, stderr } = await kubectl(...args);
  if (code !== 0) throw new Error(stderr);
  return (JSON.parse(stdout) as { status: { userInfo: UserInfo } }).status.userInfo;
}

/** Extra value of a user whose JSON Web Token kube-apiserver itself verified. */
const verified = 'authentication.kubernetes.io/credential-id';

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Record<string, string> }[];
  readonly users: readonly { readonly user: { readonly exec: { command: string; args: readonly string[] } } }[];
}

describe('the kubeconfigs of docs/guides/kubectl.md', () => {
  const [first = '', second = ''] = blocksIn('guides/kubectl.md', 'yaml');
  const passwordOfAlice = ['--login=password', '--username=alice'];
  const main = join(import.meta.dirname, '../../dist/main.js');

  /** Replaces the documented names with the names of the test, and logs in. */
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

  test('the first kubeconfig of docs/guides/kubectl.md gives access only to the platform', async () => {
    const run = await prepared(first, true);
    const { code, stdout } = await run('get', '--raw', '/kapis/iam.platform.io/v1alpha2/whoami');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"username":"alice"') });
    expect((await run('get', 'pods')).code).toBe(1);
  });

  test('the second kubeconfig of docs/guides/kubectl.md gives access to kube-apiserver', async () => {
    const run = await prepared(second, false);
    await eventually('kube-apiserver has read the published keys', async () => {
      const { code, stdout } = await run('auth', 'whoami', '-o', 'json');
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/"username": *"alice"/) });
      expect(stdout).toContain(verified);
    });
  });
});

const refused = /Unauthorized|must be logged in/;

const revoke = async (token: string): Promise<void> => {
  await call(`${secureGateway(1)}/oauth/revoke`, {
    method: 'POST',
    body: encode({ token, ...platform }),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  await eventually('the replica knows the revocation', async () =>
    expect((await call(`${secureGateway()}${nodesPath}`, { token })).status).toBe(401),
  );
};

describe('a kube-apiserver with the webhook and the JWT issuer', () => {
  test('kube-apiserver with the webhook accepts any access token until its session is revoked', async () => {
    const { access_token: token } = await tokens(passwordForm('alice'));
    const user = await whoami(token);
    expect(user.username).toBe('alice');
    expect(user.groups.toSorted()).toEqual(['keepers', 'staff', 'system:authenticated']);
    expect(Object.keys(user.extra ?? {})).not.toContain(verified);
    await revoke(token);
    await eventually(
      'kube-apiserver rejects the revoked token',
      async () => await expect(whoami(token)).rejects.toThrow(refused),
    );
  });

  test("a kube-apiserver that trusts the platform's issuer accepts a token for its own audience without the webhook", async () => {
    const { access_token: token, expires_in: life } = await tokens({
      ...passwordForm('alice'),
      audience: 'kubernetes',
    });
    expect(life).toBe(600);
    const user = await eventually('kube-apiserver has read the published keys', async () => {
      const found = await whoami(token);
      expect(Object.keys(found.extra ?? {})).toContain(verified);
      return found;
    });
    expect(user.username).toBe('alice');
    expect(user.groups.toSorted()).toEqual(['keepers', 'staff', 'system:authenticated']);
  });

  test('kube-apiserver rejects a refresh token and an id_token', async () => {
    const { refresh_token, id_token = '' } = await tokens({ ...passwordForm('alice'), scope: 'openid profile' });
    for (const token of [refresh_token, id_token]) await expect(whoami(token)).rejects.toThrow(refused);
  });
});

/** Returns an id_token of platform-cli for admin, who authorizes a device. */
async function idTokenOfDevice(scope: string): Promise<string> {
  const { json } = await call(`${secureGateway()}/oauth/device_authorization`, {
    method: 'POST',
    body: encode({ client_id: 'platform-cli', scope }),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  const { device_code, verification_uri_complete } = json as Record<string, string>;
  remember(device_code);
  await visit(verification_uri_complete ?? '');
  const { id_token = '' } = await tokens({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id: 'platform-cli',
    device_code: device_code ?? '',
  });
  return id_token;
}

describe('a kube-apiserver with the issuer and platform-cli as audiences, without the webhook', () => {
  test('kube-apiserver without the webhook accepts an access token until it expires, even after its session is revoked', async () => {
    const { access_token: token, expires_in: life } = await tokens(passwordForm('alice'));
    expect(life).toBe(7_200);
    const user = await eventually('kube-apiserver has read the published keys', () => whoami(token, trustingIssuer));
    expect(user).toMatchObject({ username: 'alice', uid: decodeToken(token).claims['sub'] });
    expect(user.groups.toSorted()).toEqual(['keepers', 'staff', 'system:authenticated']);
    // kube-apiserver caches authenticated tokens. This token is new, so that no cached result applies.
    const { access_token: revoked } = await tokens(passwordForm('alice'));
    await revoke(revoked);
    expect(Object.keys((await whoami(revoked, trustingIssuer)).extra ?? {})).toContain(verified);
  });

  test('kube-apiserver accepts an id_token of platform-cli with the scopes profile and groups', async () => {
    const user = await whoami(await idTokenOfDevice('openid profile groups'), trustingIssuer);
    expect(user.username).toBe('admin');
    expect(user.groups.toSorted()).toEqual(['platform:admins', 'system:authenticated']);
  });

  const others: Readonly<Record<string, () => Promise<string>>> = {
    'an id_token of platform-cli without a username claim': () => idTokenOfDevice('openid'),
    'an id_token of another client': async () =>
      (await tokens({ ...passwordForm('alice'), scope: 'openid profile' })).id_token ?? '',
    'a refresh token': async () => (await tokens(passwordForm('alice'))).refresh_token,
    'the token of a user who must change the password': async () =>
      (await login(newcomer, secureGateway(), passwords.alice)).access_token,
    'the exchanged token of a ServiceAccount': async () => {
      const { access_token: token } = await tokens({
        grant_type: tokenExchange,
        subject_token: await serviceAccountToken(account),
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        ...exchanger,
      });
      return token;
    },
    'a token for the audience kubernetes': async () =>
      (await tokens({ ...passwordForm('alice'), audience: 'kubernetes' })).access_token,
  };
  // evidence: issuer-audience-at-kube-apiserver
  test.each(Object.keys(others))(
    'kube-apiserver with the issuer and platform-cli as audiences, without the webhook, rejects %s',
    async (name) => {
      await expect(whoami((await others[name]?.()) ?? '', trustingIssuer)).rejects.toThrow(refused);
    },
  );
});
