/** The login of Argo CD's API server in its own code, and a replay of the login of `argocd login --sso`. */
import { deepEqual, equal, match } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { buildGoFiles } from '../../labs/go-files.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { lab } from '../../labs/integration/lab.ts';
import { startProgram } from '../../labs/integration/program.ts';
import { replay, toolPort } from '../replay.ts';
import { secretOf, settingsOf } from '../settings.ts';
import type { Built, Flow, Tool } from '../tool.ts';
import { Visitor } from '../visitor.ts';

const folder = join(import.meta.dirname, '../argo-cd');

async function build(): Promise<Built> {
  const files = { 'go.mod': 'argo-cd.mod', 'go.sum': 'argo-cd.sum', 'main.go': 'main.go' };
  const modules = await readFile(join(folder, files['go.mod']), 'utf8');
  const version = /argo-cd\/v3 (v\S+)/.exec(modules)?.[1];
  if (version === undefined) throw new Error(`${files['go.mod']} does not require Argo CD`);
  const args = ['build', '-mod=readonly', '-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', '-s -w'];
  return { version, path: await buildGoFiles({ name: 'argo-cd', folder, files, args }) };
}

type Data = Readonly<Record<string, string>>;

/** Data of the documented ConfigMaps. */
const documented = (port: number): Data => parse(settingsOf('Argo CD', port).join('')) as Data;

/** Starts Argo CD's API server with this data, and calls `use` with its address. */
async function served(
  { path }: Built,
  data: Data,
  port: number,
  use: (origin: string) => Promise<void>,
): Promise<void> {
  const address = `127.0.0.1:${port}`;
  const program = startProgram(path, [address], {
    ARGOCD_DATA: stringify(data),
    CLIENT_SECRET: secretOf('argo-cd'),
    SSL_CERT_FILE: lab().authorityFile,
  });
  try {
    await eventually('Argo CD listens', () => fetch(`http://${address}${userinfo}`));
    await use(`http://${address}`);
  } finally {
    await program.end();
  }
}

const userinfo = '/api/v1/session/userinfo';
/** Names to which the policies apply. */
const admin = ['platform:admins', 'admin'];

const logsIn: Flow = async (client) => {
  const port = await toolPort();
  await served(client, documented(port), port, async (origin) => {
    const browser = new Visitor(origin);
    const response = await browser.logIn('/auth/login');
    equal(response.status, 303, await response.text());
    deepEqual(await (await browser.open(userinfo)).json(), admin);
  });
};

const shipped: Flow = async (client) => {
  const port = await toolPort();
  const { 'oidc.config': config = '', ...data } = documented(port);
  const unset = { ...data, 'oidc.config': config.replace(/^enablePKCEAuthentication: .*\n/m, '') };
  await served(client, unset, port, async (origin) => {
    const response = await new Visitor(origin).logIn('/auth/login');
    equal(response.status, 400);
    match(await response.text(), /PKCE is required .*Argo CD enablePKCEAuthentication: true/);
  });
};

interface OIDCConfig {
  readonly issuer: string;
  readonly cliClientID: string;
  readonly requestedScopes: readonly string[];
}

const commandLine: Flow = async (client) => {
  const port = await toolPort();
  const data = documented(port);
  const { issuer, cliClientID, requestedScopes } = parse(data['oidc.config'] ?? '') as OIDCConfig;
  const { error, token } = await replay({
    issuer,
    clientID: cliClientID,
    // The default of --sso-port.
    redirectURL: 'http://localhost:8085/auth/callback',
    scopes: requestedScopes,
    pkce: true,
    token: 'id_token',
  });
  equal(error, undefined);
  await served(client, data, port, async (origin) => {
    const response = await fetch(`${origin}${userinfo}`, { headers: { authorization: `Bearer ${token}` } });
    deepEqual(await response.json(), admin);
  });
};

export const argoCD: Tool = {
  name: 'argo-cd',
  build,
  flows: {
    'logs in with enablePKCEAuthentication, and reads groups and username': logsIn,
    'logs in with argocd login --sso by default': commandLine,
    'fails without enablePKCEAuthentication, with an error that names this setting': shipped,
  },
};
