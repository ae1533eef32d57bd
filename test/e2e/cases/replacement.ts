import { strictEqual } from 'node:assert/strict';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { byAggregator, byCurl, under } from '../load.ts';
import { adminPassword, host, isReady, logIn, namespace, nodesPath, pods, release, type Pod } from '../release.ts';
import { step, type Case } from '../steps.ts';

export const replacement: Case = {
  title: 'Pods of the server are replaced without a failed request',
  steps: (cluster) => {
    const loads = async (): Promise<Parameters<typeof under>[0]> => {
      const base = `http://${host}`;
      const { access_token } = await logIn(cluster.inside, base, await adminPassword(cluster));
      return [
        byCurl(cluster.inside, `${base}${nodesPath}`, access_token, 'each'),
        byCurl(cluster.inside, `${base}${nodesPath}`, access_token, 'one'),
        byAggregator(cluster.kube, '/apis/resources.platform.io/v1alpha3/nodes'),
      ];
    };
    const rollout = `--namespace ${namespace} rollout`;
    return [
      step('no request fails during kubectl rollout restart', async () => {
        const before = new Set((await pods(cluster)).map(({ metadata }) => metadata.uid));
        const report = await under(await loads(), async () => {
          await cluster.kubectl(`${rollout} restart deployment/${release}`);
          await cluster.kubectl(`${rollout} status deployment/${release} --timeout=60s`);
          await oldPodsAreGone();
        });
        strictEqual(
          (await pods(cluster)).some(({ metadata }) => before.has(metadata.uid)),
          false,
        );
        return report;
      }),
      step('no request fails while kubectl deletes the pod of one replica', async () => {
        const [victim] = await pods(cluster);
        return under(await loads(), async () => {
          await cluster.kubectl(`--namespace ${namespace} delete pod ${victim?.metadata.name}`);
          await cluster.until('two replicas are ready again', async () => {
            const all = await pods(cluster);
            return all.length === 2 && all.every(isReady);
          });
        });
      }),
      step('a server exits with code 0 on SIGTERM', async () => {
        const [victim] = await pods(cluster);
        const { body } = await cluster.kube.stream(`/api/v1/namespaces/${namespace}/pods`, {
          query: { watch: true, fieldSelector: `metadata.name=${victim?.metadata.name}`, timeoutSeconds: 60 },
        });
        await cluster.kubectl(`--namespace ${namespace} delete pod ${victim?.metadata.name} --wait=false`);
        strictEqual(await lastExitCode(body), 0);
      }),
    ];

    /** Waits for terminating pods, which still serve accepted requests; the load must outlast them. */
    async function oldPodsAreGone(): Promise<void> {
      await cluster.until('the replaced pods are gone', async () => {
        const query = { labelSelector: `app.kubernetes.io/name=${release}` };
        const path = `/api/v1/namespaces/${namespace}/pods`;
        return (await cluster.kube.json<{ items: unknown[] }>(path, { query })).items.length === 2;
      });
    }
  },
};

/** Returns the exit code of a pod's container from a watch of the pod until it is deleted. */
async function lastExitCode(events: Readable): Promise<number | undefined> {
  for await (const line of createInterface({ input: events })) {
    const { type, object } = JSON.parse(line) as { type: string; object: Pod };
    if (type === 'DELETED') return object.status.containerStatuses?.[0]?.state?.terminated?.exitCode;
  }
  throw new Error('the pod was not deleted within a minute');
}
