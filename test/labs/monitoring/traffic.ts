/** Sends requests of all kinds that the dashboards show. */
import { setTimeout as sleep } from 'node:timers/promises';
import { call, gateway, nodesPath, open } from '../integration/http.ts';
import { nodePath, patch } from '../integration/kube.ts';
import { login, passwordForm, postForm, refreshForm, tokens } from '../integration/login.ts';

const logs = '/kapis/logging.platform.io/v1alpha2/logs';

/** Sends each kind of request to a replica once. */
async function round(base: string, count: number): Promise<void> {
  const { access_token: token, refresh_token } = await login('admin', base);
  await tokens(refreshForm(refresh_token), base);
  await postForm(passwordForm(`unknown-${count}`, 'wrong horse'), { base });
  const { access_token: other } = await login('alice', base);
  for (const path of [nodesPath, `${nodesPath}/absent`, '/api/v1/namespaces', logs]) {
    await call(`${base}${path}`, { token });
    await call(`${base}${path}`, { token: other });
  }
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'traffic-' } });
  const headers = { 'content-type': 'application/json' };
  const path = '/api/v1/namespaces/default/configmaps?dryRun=All';
  await call(`${base}${path}`, { method: 'POST', token, body, headers });
  const watch = await open(`${base}${nodesPath}?watch=true`, { token });
  watch.resume();
  await patch(nodePath('node-1'), { metadata: { annotations: { 'example.com/round': String(count) } } });
  await sleep(200);
  watch.destroy();
}

/** Sends requests to both replicas until the signal is aborted. Resolves after the last request. */
export async function sendTraffic(signal: AbortSignal): Promise<void> {
  for (let count = 0; !signal.aborted; count += 1) {
    await round(gateway(count % 2 === 0 ? 0 : 1), count);
    await sleep(200);
  }
}
