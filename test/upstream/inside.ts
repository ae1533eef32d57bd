/** Runs in the namespaces of a node on behalf of node.ts: the cluster with the chart, then the specs. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programs } from '../../hack/cluster/programs.ts';
import { startCluster, type Cluster } from '../e2e/cluster.ts';
import { importImage } from '../e2e/node/containerd.ts';
import { adminPassword, helmInstall, host, kubeconfig, logIn } from '../e2e/release.ts';
import { specImages } from './images.ts';
import { runSpecs } from './program.ts';
import { node } from './specs.ts';

const [controlGroup = '', folder = '', program = '', agnhost = '', source = ''] = process.argv.slice(2);

/** Returns the administrator's kubeconfig with the ClusterIP of kube-apiserver. Specs with a proxy skip loopback addresses. */
async function directKubeconfig({ kube }: Cluster): Promise<string> {
  const { spec } = await kube.json<{ spec: { clusterIP: string } }>('/api/v1/namespaces/default/services/kubernetes');
  const text = await readFile(join(folder, 'kubeconfig'), 'utf8');
  return text.replace(/server: .*/, `server: https://${spec.clusterIP}`);
}

try {
  const cluster = await startCluster(folder, controlGroup);
  for (const image of await specImages(agnhost, source)) await importImage(image);
  await helmInstall(cluster);
  const { access_token: token } = await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
  const { kubectl } = await programs(['kubectl']);
  const runs = { direct: await directKubeconfig(cluster), gateway: await kubeconfig(cluster, token) };
  for (const [name, content] of Object.entries(runs)) {
    const file = join(folder, `${name}.kubeconfig`);
    await writeFile(file, content, { mode: 0o600 });
    await runSpecs({ program, kubectl, kubeconfig: file, dir: folder, name, selection: node });
  }
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
