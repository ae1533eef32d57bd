import { deepStrictEqual, rejects, strictEqual } from 'node:assert/strict';
import { nodeName } from '../node/identities.ts';
import { adminPassword, authority, helmInstall, host, listNodes, logIn, namespace, nodesPath } from '../release.ts';
import { step, type Case } from '../steps.ts';

const service = (name: string): string => `/api/v1/namespaces/${namespace}/services/${name}`;

interface Service {
  readonly spec: { readonly type: string; readonly ports: readonly { readonly port: number }[] };
}

export const tlsOnly: Case = {
  title: 'All ports use TLS, and only one port is open to the load balancer',
  steps: (cluster) => {
    const portsOf = async (name: string): Promise<unknown> => {
      const { spec } = await cluster.kube.json<Service>(service(name));
      return [spec.type, spec.ports.map(({ port }) => port)];
    };
    return [
      step('helm upgrade disables plain HTTP, and the probes succeed over TLS', async () => {
        await helmInstall(cluster, 'http.enabled=false', 'service.type=LoadBalancer');
      }),
      step('the Service has no port 80, and the external Service has only port 443', async () => {
        deepStrictEqual(await portsOf('platform-apiserver'), ['ClusterIP', [443, 10250]]);
        deepStrictEqual(await portsOf('platform-apiserver-external'), ['LoadBalancer', [443]]);
        await rejects(cluster.inside.request(`http://${host}/livez`));
      }),
      step('a pod logs in and lists the nodes over TLS, and kube-apiserver reaches the server', async () => {
        const connection = { authority: await authority(cluster) };
        const base = `https://${host}`;
        const { access_token } = await logIn(cluster.inside, base, await adminPassword(cluster), connection);
        deepStrictEqual(await listNodes(cluster.inside, base, access_token, connection), [nodeName]);
        const path = nodesPath.replace('/kapis', '/apis');
        strictEqual((await cluster.kube.json<{ items: unknown[] }>(path)).items.length, 1);
      }),
      step('helm upgrade to the previous values restores port 80 and removes the external Service', async () => {
        await helmInstall(cluster);
        deepStrictEqual(await portsOf('platform-apiserver'), ['ClusterIP', [80, 443, 10250]]);
        await rejects(portsOf('platform-apiserver-external'));
        await cluster.until('port 80 responds', async () => {
          const { status } = await cluster.inside.request(`http://${host}/readyz`);
          return status === 200;
        });
      }),
    ];
  },
};
