/**
 * kubectl with kubelogin as its credential plugin. The plugin opens a browser, as in its default configuration, and the
 * test logs in there.
 */
import { deepEqual, equal, match } from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { configure } from '../../labs/integration/configure.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { call, secureGateway } from '../../labs/integration/http.ts';
import { assemble, decodeToken } from '../../labs/integration/jwt.ts';
import { lab } from '../../labs/integration/lab.ts';
import { encode } from '../../labs/integration/login.ts';
import { visit } from '../../labs/integration/person.ts';
import { remember } from '../../labs/integration/secrets.ts';
import { buildGoProgram } from '../go-program.ts';
import { settingsOf } from '../settings.ts';
import type { Site } from '../site.ts';
import type { Built, Flow, Tool } from '../tool.ts';

interface Cached {
  readonly id_token: string;
  readonly refresh_token: string;
}

/** A user's machine. */
interface Machine {
  /** Runs kubectl, and logs in at each address that its plugin opens. */
  run(...args: readonly string[]): Promise<Executed>;
  /** Returns how often a browser was opened. */
  readonly logins: () => number;
  readonly cache: { read(): Cached; write(tokens: Cached): void };
}

interface Users {
  readonly users: readonly { readonly user: { readonly exec: { args: string[] } } }[];
}

/** Writes the kubeconfig of docs/guides/clients.md with additional flags. */
function writeKubeconfig(file: string, flags: readonly string[]): void {
  const { users } = parse(settingsOf('kubelogin').join('')) as Users;
  for (const { user } of users) user.exec.args.push(...flags);
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'gateway', cluster: { server: secureGateway(), 'certificate-authority': lab().authorityFile } }],
    users,
    contexts: [{ name: 'gateway', context: { cluster: 'gateway', user: 'me' } }],
    'current-context': 'gateway',
  };
  writeFileSync(file, stringify(content));
}

/** Opens an address of the platform, or an address of kubelogin that redirects to the platform. */
async function browse(address: string): Promise<void> {
  if (address.startsWith(secureGateway())) await visit(address);
  else await visit((await fetch(address, { redirect: 'manual' })).headers.get('location') ?? '');
}

function machine({ path }: Built, site: Site, ...flags: readonly string[]): Machine {
  const home = site.folder();
  const programs = join(home, 'bin');
  mkdirSync(programs);
  symlinkSync(lab().kubectl, join(programs, 'kubectl'));
  symlinkSync(path, join(programs, 'kubectl-oidc_login'));
  writeFileSync(join(programs, 'xdg-open'), '#!/bin/sh\necho "opened $1" >&2\n', { mode: 0o755 });
  const kubeconfig = join(home, 'config');
  writeKubeconfig(kubeconfig, flags);
  const env = {
    HOME: home,
    KUBECONFIG: kubeconfig,
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    SSL_CERT_FILE: lab().authorityFile,
  };
  const folder = join(home, '.kube/cache/oidc-login');
  const file = (): string => join(folder, readdirSync(folder).find((name) => !name.endsWith('.lock')) ?? '');
  const cache = {
    read: (): Cached => JSON.parse(readFileSync(file(), 'utf8')) as Cached,
    write: (tokens: Cached): void => writeFileSync(file(), JSON.stringify(tokens)),
  };
  let logins = 0;
  return {
    logins: () => logins,
    cache,
    async run(...args) {
      let visited: Promise<void> | undefined;
      let printed = '';
      const onStderr = (text: string): void => {
        printed += text;
        const [, address] = /^opened (\S+)\n/m.exec(printed) ?? [];
        if (address === undefined || visited !== undefined) return;
        logins += 1;
        visited = browse(address);
      };
      const executed = await execute(lab().kubectl, args, { env, timeout: 60_000, onStderr });
      await visited;
      return executed;
    },
  };
}

const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'];

async function logsIn(user: Machine): Promise<void> {
  const { code, stdout, stderr } = await user.run(...whoami);
  equal(code, 0, stderr);
  equal(stdout, 'admin');
  const { id_token, refresh_token } = user.cache.read();
  remember(id_token, refresh_token);
}

/** Replaces the cached id_token with an expired one. kubelogin does not verify the signature of cached tokens. */
function expire({ cache }: Machine): void {
  const { id_token, refresh_token } = cache.read();
  const { header, claims } = decodeToken(id_token);
  cache.write({ id_token: assemble(header, { ...claims, exp: 1 }, 'signature'), refresh_token });
}

async function revoke({ cache }: Machine): Promise<void> {
  const { status } = await call(`${secureGateway()}/oauth/revoke`, {
    method: 'POST',
    body: encode({ client_id: 'kubelogin', token: cache.read().refresh_token }),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  equal(status, 200);
}

/** Messages of kubectl for a 401. */
const refused = /Unauthorized|must be logged in/;

const shipped: Flow = async (client, site) => {
  const user = machine(client, site);
  await logsIn(user);
  match((await user.run('get', 'nodes', '-o', 'name')).stdout, /^node\/node-1$/m);
  equal(user.logins(), 1);
};

const refreshes: Flow = async (client, site) => {
  const user = machine(client, site);
  await logsIn(user);
  const before = user.cache.read();
  expire(user);
  await logsIn(user);
  deepEqual([user.logins(), user.cache.read().refresh_token === before.refresh_token], [1, false]);
};

const revoked: Flow = async (client, site) => {
  const user = machine(client, site);
  await logsIn(user);
  await revoke(user);
  await eventually('the gateway refuses the cached id_token', async () =>
    match((await user.run(...whoami)).stderr, refused),
  );
  equal((await user.run('oidc-login', 'clean')).code, 0);
  await logsIn(user);
  await revoke(user);
  expire(user);
  await logsIn(user);
  equal(user.logins(), 3);
};

const withFlag =
  (flag: string): Flow =>
  async (client, site) =>
    logsIn(machine(client, site, flag));

const withoutPKCE: Flow = async (client, site) => {
  const { code, stderr } = await machine(client, site, '--oidc-pkce-method=no').run(...whoami);
  equal(code, 1);
  match(stderr, /PKCE is required \(kubelogin --oidc-pkce-method=S256/);
};

/** Makes the gateway accept no id_tokens as bearer tokens. */
const unlisted = (): Promise<() => Promise<void>> =>
  configure((configuration) => {
    configuration['gateway'] = { idTokenClients: [] };
  });

const withoutIDTokens: Flow = async (client, site) => {
  const restore = await unlisted();
  try {
    match((await machine(client, site).run(...whoami)).stderr, refused);
    await logsIn(machine(client, site, '--oidc-use-access-token'));
  } finally {
    await restore();
  }
};

export const kubelogin: Tool = {
  name: 'kubelogin',
  build: () => buildGoProgram('kubelogin'),
  flows: {
    'logs in with a browser by default, and then uses the cached token': shipped,
    'refreshes an expired id_token': refreshes,
    'logs in again after the session was revoked': revoked,
    'logs in with --grant-type=device-code': withFlag('--grant-type=device-code'),
    'succeeds with --oidc-use-access-token, without an entry in idTokenClients': withoutIDTokens,
    'fails with --oidc-pkce-method=no, with an error that names this flag': withoutPKCE,
  },
};
