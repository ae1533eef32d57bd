/** The server with a real kube-apiserver, the OAuth clients of docs/guides/clients.md, and objects for the flows. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { kubeconfigOf } from '../labs/integration/cases.ts';
import { configure } from '../labs/integration/configure.ts';
import { secureGateway } from '../labs/integration/http.ts';
import { create, get, patch } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { runningPods, startLogNode } from '../labs/integration/log-node.ts';
import { addLibraryClients } from '../labs/integration/oauth-libraries.ts';
import setup, { endLab } from '../labs/integration/setup.ts';
import { registerClients } from './settings.ts';

export interface Site {
  /** Kubeconfig of the local cluster's administrator, as written by `make run`. */
  readonly kubeconfig: string;
  /** Kubeconfig to the gateway with a token of the user admin. */
  readonly gateway: string;
  /** Namespace for objects of the clients. The pod `web` runs in it. */
  readonly namespace: string;
  /** Adds a line to the log of the pod. */
  log(line: string): void;
  /** Returns a new folder. */
  folder(): string;
  stop(): Promise<void>;
}

const namespace = 'clients';

export async function startSite(): Promise<Site> {
  await setup({});
  try {
    await configure((configuration) => {
      registerClients(configuration);
      addLibraryClients(configuration);
    });
    const node = await startLogNode({ [namespace]: ['web'] });
    const site: Site = {
      kubeconfig: lab().kubeconfig,
      gateway: await kubeconfigOf('gateway', secureGateway()),
      namespace,
      log: (line) => node.write(namespace, 'web', { time: new Date(), log: line }),
      folder: () => mkdtempSync(join(lab().dir, 'client-')),
      stop: endLab,
    };
    await create(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name: 'web' },
      spec: { nodeName: node.name, containers: [{ name: 'web', image: 'none' }] },
    });
    await runningPods(namespace, 1);
    // stern ignores containers without an ID, and simulated containers have no ID.
    const pod = `/api/v1/namespaces/${namespace}/pods/web`;
    const { status } = await get<{ status: { containerStatuses: readonly object[] } }>(pod);
    const containerStatuses = status.containerStatuses.map((one) => ({ ...one, containerID: 'containerd://web' }));
    await patch(`${pod}/status`, { status: { containerStatuses } });
    site.log('the first line');
    return site;
  } catch (error) {
    await endLab();
    throw error;
  }
}
