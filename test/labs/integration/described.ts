/**
 * Waits for the descriptions of nodes: kube-apiserver publishes them some time after its start, and those of this
 * server are based on them.
 */
import { eventually } from './eventually.ts';
import { aggregated, apisPath, call } from './http.ts';
import { kubectl, otherKubectl, succeed } from './kubectl.ts';
import { adminToken } from './login.ts';
import { apiVersion } from './served.ts';

/** Waits for each replica, since any may serve a request, and for kube-apiserver, which caches their descriptions. */
export async function described(): Promise<void> {
  for (const replica of [0, 1] as const)
    await eventually(`replica ${replica} describes nodes`, async () => {
      const { text } = await call(`${aggregated(replica)}/openapi/v3${apisPath}`, { token: await adminToken() });
      if (!text.includes('"taints"')) throw new Error(text.slice(0, 300));
    });
  await eventually('kube-apiserver describes nodes', () =>
    succeed(kubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
  );
  // An older kubectl reads the single document that kube-apiserver merges with up to a minute's delay.
  await eventually(
    'kube-apiserver describes nodes in Swagger 2.0',
    () => succeed(otherKubectl, 'explain', 'nodes.spec.taints', `--api-version=${apiVersion}`),
    90_000,
  );
}
