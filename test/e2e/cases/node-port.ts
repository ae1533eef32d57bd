import { deepStrictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { nodeName } from '../node/identities.ts';
import {
  adminPassword,
  apiService,
  authority,
  helmInstall,
  host,
  listNodes,
  logIn,
  namespace,
  pods,
  refresh,
  release,
  type Tokens,
} from '../release.ts';
import { step, type Case } from '../steps.ts';

export const nodePort: Case = {
  title: 'Clients outside the cluster use the server through a NodePort',
  steps: (cluster) => {
    let before: { kept: unknown; tokens: Tokens };
    let ports: Record<string, string>;
    return [
      step('helm upgrade changes the Service to type NodePort and restarts no pod', async () => {
        const tokens = await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
        before = { kept: await keeps(cluster), tokens };
        await helmInstall(cluster, 'service.type=NodePort');
        ports = await nodePorts(cluster);
      }),
      step('the password of admin, the CA and the caBundle stay the same after the change of the Service', async () => {
        deepStrictEqual(await keeps(cluster), before.kept);
      }),
      step('existing sessions stay valid after the change of the Service', async () => {
        const { access_token, refresh_token } = before.tokens;
        deepStrictEqual(await listNodes(cluster.inside, `http://${host}`, access_token), [nodeName]);
        await refresh(cluster.inside, `http://${host}`, refresh_token);
      }),
      step('a machine outside the cluster gets a token over http and lists the nodes', async () => {
        const base = `http://${ports['http']}`;
        // kube-proxy takes a moment to see the new port.
        await cluster.until(`${base} responds`, async () => {
          const { status } = await cluster.outside.request(`${base}/readyz`);
          return status === 200;
        });
        const { access_token } = await logIn(cluster.outside, base, await adminPassword(cluster));
        deepStrictEqual(await listNodes(cluster.outside, base, access_token), [nodeName]);
      }),
      step(
        "a machine outside the cluster gets a token and lists the nodes over https at the server's name",
        async () => {
          const connection = { authority: await authority(cluster), connectTo: ports['https'] ?? '' };
          const base = `https://${host}`;
          const { access_token } = await logIn(cluster.outside, base, await adminPassword(cluster), connection);
          deepStrictEqual(await listNodes(cluster.outside, base, access_token, connection), [nodeName]);
        },
      ),
    ];
  },
};

/** Returns everything that an upgrade must not change. */
async function keeps(cluster: Cluster): Promise<unknown> {
  const { spec } = await cluster.kube.json<{ spec: { caBundle: string } }>(apiService);
  return {
    password: await adminPassword(cluster),
    authority: await authority(cluster),
    caBundle: spec.caBundle,
    pods: (await pods(cluster)).map(({ metadata }) => metadata.uid).toSorted(),
  };
}

async function nodePorts({ kube, nodeAddress }: Cluster): Promise<Record<string, string>> {
  const { spec } = await kube.json<{ spec: { ports: { name: string; nodePort: number }[] } }>(
    `/api/v1/namespaces/${namespace}/services/${release}`,
  );
  return Object.fromEntries(spec.ports.map((port) => [port.name, `${nodeAddress}:${port.nodePort}`]));
}
