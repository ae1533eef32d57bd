import { deepStrictEqual, match, rejects, strictEqual } from 'node:assert/strict';
import { nodeName } from '../node/identities.ts';
import { apiService } from '../release.ts';
import { step, type Case } from '../steps.ts';

const path = '/apis/resources.platform.io/v1alpha3/nodes';
const resource = 'nodes.resources.platform.io';

export const aggregation: Case = {
  title: 'kubectl reaches the server through kube-apiserver',
  steps: (cluster) => [
    step('kube-apiserver reports the aggregated API as available', async () => {
      await cluster.until('the APIService is available', async () => {
        const { status } = await cluster.kube.json<{ status: { conditions?: Condition[] } }>(apiService);
        const available = status.conditions?.find(({ type }) => type === 'Available');
        if (available?.status !== 'True')
          throw new Error(available?.message ?? 'the APIService has no condition Available');
        return true;
      });
    }),
    step(`kubectl get --raw ${path} returns the list of nodes`, async () => {
      const list = JSON.parse(await cluster.kubectl(`get --raw ${path}`)) as {
        kind: string;
        items: { metadata: { name: string } }[];
      };
      strictEqual(list.kind, 'NodeList');
      deepStrictEqual(
        list.items.map(({ metadata }) => metadata.name),
        [nodeName],
      );
    }),
    step(`kubectl get ${resource} prints a table`, async () => {
      const table = await cluster.kubectl(`get ${resource}`);
      match(table, new RegExp(`^NAME +STATUS +ROLES +AGE +VERSION\\n${nodeName} +Ready `));
    }),
    step('kube-apiserver rejects a user without rights', async () => {
      await rejects(cluster.kubectl(`get ${resource} --as jane`), /nodes\.resources\.platform\.io is forbidden/);
    }),
    step('a user who is bound to the ClusterRole platform-node-reader can read nodes', async () => {
      const binding = 'clusterrolebinding jane-reads-nodes';
      await cluster.kubectl(`create ${binding} --clusterrole=platform-node-reader --user=jane`);
      await cluster.until('jane is allowed to read nodes', async () => {
        const name = await cluster.kubectl(`get ${resource} --as jane --output name`);
        return name.trim() === `node.resources.platform.io/${nodeName}`;
      });
      await cluster.kubectl(`delete ${binding}`);
    }),
  ],
};

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message: string;
}
