import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { writeTokenKubeconfig } from '../cluster/kubeconfig.ts';
import { release } from './chart.ts';

export interface Identity {
  /** Path of a kubeconfig that authenticates as the chart's ServiceAccount. */
  readonly kubeconfig: string;
  /** Stops the renewal of the token. */
  close(): void;
}

const life = 3600;
const renewal = 300_000;

/**
 * Creates the identity that the server has in a pod, so that the chart's RBAC applies here too. As in a pod, the token
 * is in a file and is renewed in that file. `kubeconfig` is a kubeconfig of an administrator for the same cluster as
 * `kube`.
 */
export async function serverIdentity(kube: KubeClient, kubeconfig: string, dir: string): Promise<Identity> {
  const tokenFile = join(dir, 'server.token');
  const renew = async (): Promise<void> => {
    const path = `/api/v1/namespaces/${release.namespace}/serviceaccounts/${release.name}/token`;
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: life } };
    const { status } = await kube.json<{ status: { token: string } }>(path, { method: 'POST', body });
    await writeFile(`${tokenFile}.new`, status.token, { mode: 0o600 });
    await rename(`${tokenFile}.new`, tokenFile);
  };
  await renew();
  const own = join(dir, 'server.kubeconfig');
  await writeTokenKubeconfig(own, kubeconfig, tokenFile);
  const timer = setInterval(() => {
    renew().catch((error: unknown) => console.error(`the server's token was not renewed: ${String(error)}`));
  }, renewal);
  return { kubeconfig: own, close: () => clearInterval(timer) };
}
