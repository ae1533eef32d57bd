/** Clients in Java. java/fabric8 and java/client-java print the same results. */
import { deepEqual } from 'node:assert/strict';
import { output } from '../../../hack/cluster/exec.ts';
import { nodes } from '../../labs/integration/kube.ts';
import { buildJavaProgram, javaCommand } from '../java-program.ts';
import type { Site } from '../site.ts';
import type { Built, Flow, Tool } from '../tool.ts';

async function lines(client: Built, flow: string, kubeconfig: string, { namespace }: Site): Promise<string[]> {
  const [program, ...args] = javaCommand(client);
  const text = await output(program, [...args, flow, kubeconfig, namespace], { timeout: 60_000 });
  return text.trim().split('\n');
}

const names = async (): Promise<string[]> => (await nodes()).items.map(({ metadata }) => metadata.name);

/** Runs a flow through the gateway. */
const through =
  (flow: string, expected: readonly string[]): Flow =>
  async (client, site) =>
    deepEqual(await lines(client, flow, site.gateway, site), expected);

const flows: Tool['flows'] = {
  'reads the kubeconfig that make run writes': async (client, site) =>
    deepEqual(await lines(client, 'nodes', site.kubeconfig, site), await names()),
  'lists nodes in pages through the gateway': async (client, site) =>
    deepEqual(await lines(client, 'nodes', site.gateway, site), await names()),
  'lists nodes of the group resources.platform.io': async (client, site) =>
    deepEqual(await lines(client, 'platform', site.gateway, site), await names()),
  'creates, applies, patches and deletes objects': through('objects', [
    'created 1',
    'applied 2',
    'patched 3',
    'read 3',
    'deleted',
    '404 NotFound',
  ]),
  'receives changes through an informer': through('informer', ['added 1', 'updated 2', 'deleted 2']),
  'reads the log of a pod': through('logs', ['the first line']),
};

/** Flow of leader election, which client-java has not provided since version 26. */
const leader = through('leader', ['first leads', 'first stops', 'second leads', 'second stops']);

export const fabric8: Tool = {
  name: 'fabric8',
  build: () => buildJavaProgram('fabric8'),
  flows: { ...flows, 'elects a leader': leader },
};
export const clientJava: Tool = { name: 'client-java', build: () => buildJavaProgram('client-java'), flows };
