/** When nodes are described: kube-apiserver is late with that right after its start, and we describe ours by its description. */
import { eventually } from './eventually.ts';
import { aggregated, apisPath, call } from './http.ts';
import { kubectl, otherKubectl, succeed } from './kubectl.ts';
import { adminToken } from './login.ts';
import { apiVersion } from './served.ts';

/** By each replica, since any of them may be asked, and by kube-apiserver, which keeps what it was told. */
export async function described(): Promise<void> {
  for (const replica of [0, 1] as const)
    await eventually(`replica ${replica} describes nodes`, async () => {
      const { text } = await call(`${aggregated(replica)}/openapi/v3${apisPath}`, { token: await adminToken() });
      if (!text.includes('"taints"')) throw new Error(text.slice(0, 300));
    });
  await eventually('kube-apiserver describes nodes', () =>
    succeed(kubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
  );
  // An older kubectl reads the one document that kube-apiserver merges, from what it was told up to a minute ago.
  await eventually(
    'kube-apiserver describes nodes in Swagger 2.0',
    () => succeed(otherKubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
    90_000,
  );
}
