/**
 * make run: starts a control plane, installs the chart, and runs one server as a process behind the chart's Service.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { isKubeError } from '../../src/cluster/client/kube-error.ts';
import { clusterUp, usesCurrent } from '../cluster/commands.ts';
import { build } from '../build.ts';
import { withLock } from '../cluster/lock.ts';
import { addressBlock, assertAddress, openBlock } from '../cluster/network.ts';
import { find, logEnd } from '../cluster/processes.ts';
import { linkPrograms } from '../cluster/programs.ts';
import { installChart, release } from './chart.ts';
import { keepConfiguration } from './configuration.ts';
import { quote, removeEnv, writeEnv } from './env-file.ts';
import { follow } from './follow.ts';
import { serverIdentity } from './identity.ts';
import { startOwnPod } from './own-pod.ts';
import { checkPorts, serverPorts } from './ports.ts';
import { apisAvailable, setEndpoints } from './registration.ts';
import { startServer, type Server } from './server.ts';
import { showWarnings } from './warnings.ts';

const root = join(import.meta.dirname, '../..');
const dir = join(root, '.cluster');
const env = join(dir, 'env');
const authority = join(dir, 'ca.crt');
const auditLog = join(dir, 'audit.log');
const bin = join(dir, 'bin');
const nodes = '/resources.platform.io/v1alpha3/nodes';

try {
  await withLock(
    `run ${dir}`,
    async () => {
      const before = find(dir, 'server');
      if (before !== undefined)
        throw new Error(`the server of this work tree is already running, as process ${before.pid}`);
      removeEnv(env);
      process.on('exit', () => removeEnv(env));
      process.exitCode = await run();
    },
    () => {
      throw new Error('make run is already running in this work tree');
    },
  );
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

/** Runs one server until it exits. Returns the exit code of make run. */
async function run(): Promise<number> {
  checkPorts();
  await build();
  const { kubeconfig } = await clusterUp(dir);
  const block = await addressBlock(dir);
  await openBlock(block);
  assertAddress(block);
  const { address } = block;
  const ports = await serverPorts(dir, address);
  const url = `https://127.0.0.1:${ports.https}`;
  const kube = await createKubeClient({ kubeconfig });
  const named = {
    authentication: { issuer: url },
    gateway: { externalURL: url },
    audit: { log: { path: auditLog } },
  };
  await installChart(kubeconfig, { config: named }, async (values) => ({
    ...values,
    config: await keepConfiguration(kube, named),
  }));
  await linkPrograms(bin, ['kubectl', 'helm']);

  const identity = await serverIdentity(kube, kubeconfig, dir);
  const server = await startServer({ dir, kubeconfig: identity.kubeconfig, address, ports });
  const undo = [follow(server.log, showWarnings)];
  let isStopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (!isStopping) console.log('stopping the server; open requests finish first, which takes a few seconds');
      isStopping = true;
      void server.stop();
    });
  try {
    await server.ready();
    await setEndpoints(kube, [{ address, port: ports.aggregated }]);
    await apisAvailable(kube, server.check);
    if (!usesCurrent()) undo.push(follow(server.log, await startOwnPod({ dir, kube, kubeconfig, address })));
    await announce(kube, kubeconfig, server);
    const code = await server.exited;
    if (isStopping) return 0;
    console.error(
      `the server has ended${code === null ? ', killed by a signal' : ` with ${code}`}; the end of its log:`,
    );
    console.error(await logEnd(dir, 'server'));
    return code === 0 ? 0 : 1;
  } catch (error) {
    if (isStopping) return 0;
    throw error;
  } finally {
    await server.stop();
    removeEnv(env);
    for (const one of undo) one();
    identity.close();
    await kube.close();
  }
}

/** Writes and prints the addresses of the server and the credentials of its admin, for scripts and people. */
async function announce(kube: KubeClient, kubeconfig: string, server: Server): Promise<void> {
  const path = `/api/v1/namespaces/${release.namespace}`;
  const ca = await kube.json<{ data: Record<string, string> }>(`${path}/configmaps/platform-apiserver-ca`);
  await writeFile(authority, ca.data['ca.crt'] ?? '');
  const password = await adminPassword(kube, `${path}/secrets/platform-admin`);
  const kubectl = join(bin, 'kubectl');
  await writeEnv(env, {
    BASE_URL: server.baseURL,
    TLS_URL: server.tlsURL,
    CA_FILE: authority,
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: password ?? '',
    KUBECONFIG: kubeconfig,
    KUBECTL: kubectl,
    SERVER_PID: String(server.pid),
  });
  const form = `-d grant_type=password -d username=admin --data-urlencode password=${quote(password ?? '…')} -d client_id=platform -d client_secret=platform`;
  console.log(`platform-apiserver is ready: ${server.tlsURL}

In a browser: open ${server.tlsURL} and log in as admin
  password: ${password ?? 'changed by the user'}
  certificate: accept the warning of the browser, or import the CA ${authority}
  API explorer: ${server.tlsURL}/docs

In a terminal:
export CURL_CA_BUNDLE=${quote(authority)}
TOKEN=$(curl -sS ${server.tlsURL}/oauth/token ${form} | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
curl -sS -H "Authorization: Bearer $TOKEN" '${server.tlsURL}/kapis${nodes}?limit=3&fields=status.nodeInfo.kubeletVersion'
${quote(kubectl)} --kubeconfig ${quote(kubeconfig)} get --raw '/apis${nodes}?limit=1'

Plain HTTP: ${server.baseURL}
Log: ${server.log}
Audit events: ${auditLog}
Ctrl-C stops the server; make cluster-down stops the control plane.`);
}

/** Returns the initial password of the admin, or undefined once the admin has changed it. */
async function adminPassword(kube: KubeClient, path: string): Promise<string | undefined> {
  try {
    const secret = await kube.json<{ data?: Record<string, string> }>(path);
    const password = secret.data?.['password'];
    return password === undefined ? undefined : Buffer.from(password, 'base64').toString('utf8');
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}
