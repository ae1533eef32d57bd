/** Process with an in-memory cluster whose response times are configured. Sends its URL to its parent. */
import { bind, line, putNamespace, putPod, resource, serveResources } from '../../labs/conformance/logging-lab.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { serveCluster } from '../../fakes/kube-server.ts';
import { hog, reviewTime, slowTime } from './lab.ts';

interface Spec {
  readonly user: string;
  readonly resourceAttributes?: { readonly subresource?: string; readonly namespace?: string };
}

const review = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const tokenReview = '/apis/authentication.k8s.io/v1/tokenreviews';

const cluster = new MemoryCluster();
serveResources(cluster, { core: [resource('secrets', 'Secret', 'Namespaced'), resource('nodes', 'Node', 'Cluster')] });
for (const name of ['shop', 'slow']) {
  putNamespace(cluster, name);
  putPod(cluster, { namespace: name, name: `${name}-pod` });
  cluster.podLogs.put(
    `${name}/${name}-pod/main`,
    ...Array.from({ length: 200 }, (_, second) => line(second, 'x'.repeat(100))),
  );
  bind(cluster, name, hog);
}
for (let index = 0; index < 1_000; index += 1)
  cluster.put('/api/v1/nodes', {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: { name: `node-${index}`, labels: { rack: String(index % 10) } },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      addresses: Array.from({ length: 20 }, (_, at) => ({ type: 'InternalIP', address: `10.0.${index}.${at}` })),
    },
  });
// Only the logs of these two namespaces are visible.
cluster.respond(review, ({ spec }) => {
  const { resourceAttributes: wanted } = spec as Spec;
  return { status: { allowed: wanted?.subresource !== 'log' || ['shop', 'slow'].includes(wanted.namespace ?? '') } };
});
cluster.respond(tokenReview, ({ spec }) => {
  const claims = Buffer.from((spec as { token: string }).token.split('.')[1] ?? '', 'base64url').toString();
  const { sub: username = 'nobody' } = JSON.parse(claims) as { sub?: string };
  return { status: { authenticated: true, user: { username, groups: ['people'] } } };
});
const url = await serveCluster(cluster, (path, user) => {
  if (path === review || path === tokenReview) return reviewTime;
  if (path.includes('/slow/') || (path.endsWith('/secrets') && user === hog)) return slowTime;
  return 1;
});
process.send?.({ url });
