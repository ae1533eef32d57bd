import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { kubernetesMinor } from '../../../hack/cluster/kubernetes-version.ts';
import { newAuthority } from '../../../src/tls/issuing.ts';
import type { Cluster } from '../cluster.ts';
import { under, type Load } from '../load/load.ts';
import { executions, prepareTraffic, removeTraffic, traffic, type Visitor } from '../load/traffic.ts';
import { watchTokens } from '../node/apiserver-logs.ts';
import { rotateFrontProxy } from '../node/front-proxy.ts';
import { tokenId } from '../node/service-account-token.ts';
import { apiService, authority, helmInstall, host, namespace, pods, settled, type Pod } from '../release.ts';
import { step, type Case } from '../steps.ts';

const secret = `/api/v1/namespaces/${namespace}/secrets/platform-serving-cert`;
/** Default of the chart. */
const replicas = 2;
const year = 366 * 86_400_000;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

export const rotation: Case = {
  title: 'No request fails while certificates and tokens are rotated under mixed load',
  steps: (cluster) => {
    let visitor: Visitor;
    let before: unknown;
    let next: Awaited<ReturnType<typeof newAuthority>>;

    const patchSecret = (data: Readonly<Record<string, string | null>>): Promise<unknown> =>
      cluster.kube.json(secret, { method: 'PATCH', contentType: 'application/merge-patch+json', body: { data } });

    return [
      step('no request fails while the front-proxy CA and the certificate of kube-apiserver are replaced', async () => {
        // A failed case may have left another number of replicas.
        await helmInstall(cluster);
        await settled(cluster, replicas);
        visitor = await prepareTraffic(cluster);
        before = await instances(cluster);
        return under(await traffic(cluster, visitor), () => rotateFrontProxy(cluster));
      }),
      step('the server publishes a second CA for clients and for kube-apiserver', async () => {
        next = await newAuthority(Date.now() - year);
        // Servers publish their next CA for a year before it signs. A previous CA is published without that effect.
        await patchSecret({ 'previous-ca.crt': base64(next.cert) });
        await cluster.until('the CA is published', async () => {
          const { spec } = await cluster.kube.json<{ spec: { caBundle: string } }>(apiService);
          const bundle = Buffer.from(spec.caBundle, 'base64').toString();
          return [bundle, await authority(cluster)].every((text) => text.includes(next.cert.trim()));
        });
      }),
      step('no request fails while the CA and the serving certificate are replaced', async () =>
        under(await traffic(cluster, visitor), async () => {
          const ca = { 'next-ca.crt': base64(next.cert), 'next-ca.key': base64(next.key) };
          await patchSecret({ 'previous-ca.crt': null, ...ca });
          await cluster.until('all ports use a certificate of the new CA', async () => {
            const { data } = await cluster.kube.json<{ data: Record<string, string> }>(secret);
            const issued = new X509Certificate(Buffer.from(data['tls.crt'] ?? '', 'base64'));
            strictEqual(issued.verify(new X509Certificate(next.cert).publicKey), true);
            const fingerprints = await Promise.all((await pods(cluster)).flatMap(servedCertificates));
            deepStrictEqual(new Set(fingerprints), new Set([issued.fingerprint256]));
          });
        }),
      ),
      step('no request fails while the kubelet replaces the ServiceAccount tokens of the servers', async () => {
        // A restarted kubelet requests new tokens, as before their expiry.
        const loads = await loadsDuringKubeletRestart(cluster, visitor);
        const servers = await pods(cluster);
        const ids = (): string[] => servers.map((pod) => tokenId(cluster.folder, pod));
        const old = ids();
        const usedTokens = await watchTokens(cluster.folder);
        return under(loads, async () => {
          await cluster.restart('kubelet');
          await cluster.until('every pod has a new token', async () => ids().every((id) => !old.includes(id)));
          await cluster.until('every server uses its new token', async () => {
            const used = await usedTokens();
            return ids().every((id) => used.has(id));
          });
        });
      }),
      step('no server was restarted', async () => {
        await removeTraffic(cluster);
        deepStrictEqual(await instances(cluster), before);
      }),
    ];
  },
};

/**
 * Returns the loads that succeed during a restart of the kubelet. Commands cannot be executed meanwhile. Before
 * Kubernetes 1.35, a restarted kubelet reports all servers as not ready until it has probed them, so clients must retry.
 */
async function loadsDuringKubeletRestart(cluster: Cluster, visitor: Visitor): Promise<Load[]> {
  const loads = await traffic(cluster, visitor, (await kubernetesMinor()) >= 35 ? 0 : 10_000);
  return loads.filter(({ label }) => label !== executions);
}

/** Returns the uids of the pods with the numbers of restarts. */
const instances = async (cluster: Cluster): Promise<unknown> =>
  (await pods(cluster)).map(({ metadata, status }) => [metadata.uid, status.containerStatuses?.[0]?.restartCount]);

/** Returns the fingerprint of the certificate at each TLS port of a pod. Throws after five seconds without it. */
const servedCertificates = ({ status }: Pod): Promise<string>[] =>
  [9443, 10250].map(async (port) => {
    const socket = connect({ host: status.podIP ?? '', port, servername: host, rejectUnauthorized: false });
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(5_000) });
      return socket.getPeerCertificate().fingerprint256;
    } finally {
      socket.destroy();
    }
  });
