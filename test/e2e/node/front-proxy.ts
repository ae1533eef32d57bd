/** The front proxy: kube-apiserver, which forwards requests to aggregated servers with a client certificate. */
import { ok } from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { createAuthority, type Pair } from '../../../hack/cluster/pki.ts';
import type { Cluster } from '../cluster.ts';
import { authority, host, nodesPath, pods, type Pod } from '../release.ts';
import { watchProxyCertificate } from './apiserver-logs.ts';

const configMap = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
const key = 'requestheader-client-ca-file';

const pki = (folder: string, name: string): string => join(folder, 'pki', name);
const read = (folder: string, name: string): string => readFileSync(pki(folder, name), 'utf8');

function write(folder: string, name: string, text: string): void {
  writeFileSync(pki(folder, `${name}.new`), text, { mode: 0o600 });
  renameSync(pki(folder, `${name}.new`), pki(folder, name));
}

/**
 * Replaces the front-proxy CA and the client certificate of kube-apiserver, as an administrator does: kube-apiserver
 * reads the files again without a restart. Throws unless the servers then accept only the new certificate.
 */
export async function rotateFrontProxy(cluster: Cluster): Promise<void> {
  const { folder, kube, until } = cluster;
  const published = async (): Promise<string> =>
    (await kube.json<{ data: Record<string, string> }>(configMap)).data[key] ?? '';
  const servers = await pods(cluster);
  ok(servers.length > 0);
  const respond = async (pair: Pair, status: number): Promise<boolean> =>
    (await Promise.all(servers.map((pod) => statusFor(cluster, pod, pair)))).every((one) => one === status);

  const oldCA = read(folder, 'front-proxy-ca.crt');
  const oldClient = {
    certificate: read(folder, 'front-proxy-client.crt'),
    key: read(folder, 'front-proxy-client.key'),
  };
  const nextAuthority = await createAuthority('front-proxy-ca-2');
  const nextClient = await nextAuthority.issue({ commonName: 'front-proxy-client' });
  write(folder, 'front-proxy-ca.crt', `${oldCA}${nextAuthority.certificate}`);
  await until('the servers accept the new certificate', () => respond(nextClient, 200));

  const isLoaded = await watchProxyCertificate(folder);
  write(folder, 'front-proxy-client.key', nextClient.key);
  write(folder, 'front-proxy-client.crt', nextClient.certificate);
  await until(
    'kube-apiserver uses the new certificate',
    async () => (await isLoaded()) && (await hasUpdatedProxies(cluster)),
  );

  write(folder, 'front-proxy-ca.crt', nextAuthority.certificate);
  // kube-apiserver adds CAs to the ConfigMap, but removes none.
  await until('only the new CA is published', async () => {
    const body = { data: { [key]: nextAuthority.certificate } };
    await kube.json(configMap, { method: 'PATCH', contentType: 'application/merge-patch+json', body });
    return !(await published()).includes(oldCA.trim());
  });
  await until('the servers reject the old certificate', () => respond(oldClient, 401));
  ok(await respond(nextClient, 200));
}

/** Returns whether kube-apiserver has processed all changes that affect the connections to aggregated servers. */
async function hasUpdatedProxies({ kubectl }: Cluster): Promise<boolean> {
  const metrics = await kubectl('get --raw /metrics');
  const value = (name: string): string | undefined =>
    new RegExp(`^workqueue_${name}{name="APIServiceRegistrationController"} (.+)$`, 'm').exec(metrics)?.[1];
  const added = value('adds_total');
  ok(added !== undefined);
  return added === value('work_duration_seconds_count');
}

/** Sends a request to a pod as kube-apiserver does, and returns the status of the response. Throws after five seconds. */
async function statusFor(cluster: Cluster, pod: Pod, pair: Pair): Promise<number | undefined> {
  const sent = request({
    host: pod.status.podIP,
    port: 10250,
    servername: host,
    path: nodesPath.replace('/kapis', '/apis'),
    ca: await authority(cluster),
    cert: pair.certificate,
    key: pair.key,
    agent: false,
    headers: { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' },
    signal: AbortSignal.timeout(5_000),
  });
  try {
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response.statusCode;
  } finally {
    sent.destroy();
  }
}
