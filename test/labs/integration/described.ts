/**
 * Waits until kube-apiserver and the replicas describe nodes. kube-apiserver publishes its descriptions some time after
 * its start, and the descriptions of the replicas are based on them.
 */
import { eventually } from './eventually.ts';
import { aggregated, apisPath, call } from './http.ts';
import { kubectl, otherKubectl, succeed } from './kubectl.ts';
import { adminToken } from './login.ts';
import { apiVersion } from './served.ts';

/**
 * Waits for both replicas, because either may serve a request, and for kube-apiserver, which caches the descriptions of
 * the replicas.
 */
export async function described(): Promise<void> {
  for (const replica of [0, 1] as const)
    await eventually(`replica ${replica} describes nodes`, async () => {
      const { text } = await call(`${aggregated(replica)}/openapi/v3${apisPath}`, { token: await adminToken() });
      if (!text.includes('"taints"')) throw new Error(text.slice(0, 300));
    });
  await eventually('kube-apiserver describes nodes', () =>
    succeed(kubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
  );
  // An older kubectl reads the Swagger 2.0 document. kube-apiserver merges this document with a delay of up to a
  // minute.
  await eventually(
    'kube-apiserver describes nodes in Swagger 2.0',
    () => succeed(otherKubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
    90_000,
  );
}
