/** make kubeconfig: writes a kubeconfig with which kubectl reaches the server of make run as its admin. The server issues it. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';

const dir = join(import.meta.dirname, '../../.cluster');
const file = join(dir, 'platform.kubeconfig');

const env = await readFile(join(dir, 'env'), 'utf8').catch(() => undefined);
if (env === undefined) {
  console.error('the server of this work tree is not running: start it with "make run"');
  process.exit(1);
}
const { TLS_URL = '', CA_FILE = '', ADMIN_USERNAME = '', ADMIN_PASSWORD = '', KUBECTL = '' } = parseEnv(env);
const ca = await readFile(CA_FILE);

async function fetchText(path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<string> {
  const method = body === undefined ? 'GET' : 'POST';
  const request = https.request(`${TLS_URL}${path}`, { method, ca, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const all = await text(response);
  if (response.statusCode !== 200) throw new Error(`${path} returned ${response.statusCode}: ${all}`);
  return all;
}

try {
  const form = new URLSearchParams({
    grant_type: 'password',
    username: ADMIN_USERNAME,
    password: ADMIN_PASSWORD,
    client_id: 'platform',
    client_secret: 'platform',
  });
  const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const { access_token: token } = JSON.parse(await fetchText('/oauth/token', type, form.toString())) as {
    access_token: string;
  };
  const bearer = { Authorization: `Bearer ${token}` };
  const kubeconfig = await fetchText('/kapis/config.platform.io/v1alpha2/kubeconfig?token=embed', bearer);
  await writeFile(file, kubeconfig, { mode: 0o600 });
  console.log(`wrote ${file}, valid for two hours\n\n${KUBECTL} --kubeconfig ${file} get nodes`);
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
