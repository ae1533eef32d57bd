/** Started by node.ts in the namespaces of a node. Starts the cluster with the chart, and then runs the specs. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { startCluster, type Cluster } from '../e2e/cluster.ts';
import { tool } from '../e2e/machine/packages.ts';
import { importImage } from '../e2e/node/containerd.ts';
import { adminPassword, helmInstall, host, kubeconfig, logIn, namespace, release } from '../e2e/release.ts';
import { specImages } from './images.ts';
import { runSpecs } from './program.ts';
import { node } from './specs.ts';

const [controlGroup = '', folder = '', program = '', agnhost = '', source = ''] = process.argv.slice(2);

async function clusterIP({ kube }: Cluster, path: string): Promise<string> {
  const { spec } = await kube.json<{ spec: { clusterIP: string } }>(`/api/v1/namespaces/${path}`);
  return spec.clusterIP;
}

/**
 * Returns the administrator's kubeconfig with the ClusterIP of kube-apiserver, because specs that use a proxy are
 * skipped for loopback addresses.
 */
async function directKubeconfig(cluster: Cluster): Promise<string> {
  const text = await readFile(join(folder, 'kubeconfig'), 'utf8');
  return withServer(text, await clusterIP(cluster, 'default/services/kubernetes'));
}

/**
 * Returns a kubeconfig to the gateway by the name in its certificate. Some specs verify the host of the URL even if the
 * kubeconfig disables the verification.
 */
async function gatewayKubeconfig(cluster: Cluster): Promise<string> {
  const hosts = join(folder, 'hosts');
  await writeFile(
    hosts,
    `127.0.0.1 localhost\n${await clusterIP(cluster, `${namespace}/services/${release}`)} ${host}\n`,
  );
  await output(tool('mount'), ['--bind', hosts, '/etc/hosts']);
  const { access_token: token } = await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
  return withServer(await kubeconfig(cluster, token), host);
}

const withServer = (text: string, name: string): string => text.replace(/server: .*/, `server: https://${name}`);

try {
  const cluster = await startCluster(folder, controlGroup);
  for (const image of await specImages(agnhost, source)) await importImage(image);
  await helmInstall(cluster);
  const { kubectl } = await programs(['kubectl']);
  const runs = { direct: await directKubeconfig(cluster), gateway: await gatewayKubeconfig(cluster) };
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
