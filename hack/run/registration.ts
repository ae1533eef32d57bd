import { randomUUID } from 'node:crypto';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { until } from '../cluster/until.ts';
import { release } from './chart.ts';

interface APIService {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly service?: { readonly name: string; readonly namespace: string } };
  readonly status?: { readonly conditions?: readonly { type: string; status: string; message?: string }[] };
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** Makes exactly these processes the endpoints of the chart's Service. */
export async function setEndpoints(kube: KubeClient, endpoints: readonly Endpoint[]): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${release.namespace}/endpointslices`;
  const names = endpoints.map(({ address, port }) => `${release.name}-process-${address.replaceAll('.', '-')}-${port}`);
  const label = 'endpointslice.kubernetes.io/managed-by=hack-run';
  const query = { labelSelector: label };
  const present = await kube.json<{ items: { metadata: { name: string } }[] }>(path, { query });
  for (const { metadata } of present.items)
    if (!names.includes(metadata.name)) await kube.json(`${path}/${metadata.name}`, { method: 'DELETE' });
  for (const [index, { address, port }] of endpoints.entries())
    await kube.json(`${path}/${names[index]}`, {
      method: 'PATCH',
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'hack-run', force: true },
      body: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: names[index],
          labels: {
            'kubernetes.io/service-name': release.name,
            'endpointslice.kubernetes.io/managed-by': 'hack-run',
          },
          // The annotation gets a new value each time. After a change, kube-apiserver checks an unavailable server at
          // once instead of after a long back-off.
          annotations: { 'platform.io/registration': randomUUID() },
        },
        addressType: 'IPv4',
        endpoints: [{ addresses: [address], conditions: { ready: true, serving: true, terminating: false } }],
        ports: [{ name: 'aggregated', port, protocol: 'TCP' }],
      },
    });
}

/** Waits until kube-apiserver forwards requests for every API of the chart's Service. */
export async function apisAvailable(kube: KubeClient, check: () => Promise<void>): Promise<void> {
  await until('kube-apiserver reaches the server', check, async () => {
    const { items } = await kube.json<{ items: APIService[] }>('/apis/apiregistration.k8s.io/v1/apiservices');
    const ours = items.filter(
      ({ spec: { service } }) => service?.name === release.name && service.namespace === release.namespace,
    );
    const conditions = ours.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Available'));
    const bad = conditions.find((condition) => condition?.status !== 'True');
    if (bad !== undefined) throw new Error(bad.message);
    return ours.length > 0 && conditions.every((condition) => condition !== undefined);
  });
}
