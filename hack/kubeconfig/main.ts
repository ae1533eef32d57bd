/**
 * make kubeconfig: writes a kubeconfig, issued by the server of make run, with which kubectl reaches that server as its
 * admin.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { fetchKubeconfig } from './fetch.ts';

const dir = join(import.meta.dirname, '../../.cluster');
const file = join(dir, 'platform.kubeconfig');

const env = await readFile(join(dir, 'env'), 'utf8').catch(() => undefined);
if (env === undefined) {
  console.error('the server of this work tree is not running: start it with "make run"');
  process.exit(1);
}
const { TLS_URL = '', CA_FILE = '', ADMIN_USERNAME = '', ADMIN_PASSWORD = '', KUBECTL = '' } = parseEnv(env);

try {
  const kubeconfig = await fetchKubeconfig({
    url: TLS_URL,
    authority: await readFile(CA_FILE, 'utf8'),
    username: ADMIN_USERNAME,
    password: ADMIN_PASSWORD,
  });
  await writeFile(file, kubeconfig, { mode: 0o600 });
  console.log(`wrote ${file}, valid for two hours\n\n${KUBECTL} --kubeconfig ${file} get nodes`);
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
