import { strictEqual } from 'node:assert/strict';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { isKubeError } from '../../../src/cluster/client/kube-error.ts';
import { under } from '../load/load.ts';
import { prepareTraffic, removeTraffic, traffic, type Visitor } from '../load/traffic.ts';
import { serverProcess } from '../node/server-process.ts';
import { helmInstall, namespace, pods, podsPath, release, settled, type Pod } from '../release.ts';
import { step, type Case } from '../steps.ts';

const replicas = 3;
/** Milliseconds for which clients retry while a replica is killed: until kube-proxy has removed its address. */
const retry = 10_000;

export const replacement: Case = {
  title: 'No request fails while pods of the server are replaced under mixed load',
  steps: (cluster) => {
    let visitor: Visitor;
    const loaded = async (work: () => Promise<unknown>, retryTime = 0): Promise<string> =>
      under(await traffic(cluster, visitor, retryTime), async () => {
        await work();
        await settled(cluster, replicas);
      });
    const rollout = (words: string): Promise<string> =>
      cluster.kubectl(`--namespace ${namespace} rollout ${words} deployment/${release}`);

    return [
      step('helm upgrade scales the release to three replicas', async () => {
        await helmInstall(cluster, `replicaCount=${replicas}`);
        visitor = await prepareTraffic(cluster);
      }),
      step('no request fails during kubectl rollout restart', async () => {
        const before = new Set((await pods(cluster)).map(({ metadata }) => metadata.uid));
        const report = await loaded(async () => {
          await rollout('restart');
          await rollout('status --timeout=150s');
        });
        strictEqual(
          (await pods(cluster)).some(({ metadata }) => before.has(metadata.uid)),
          false,
        );
        return report;
      }),
      step('no request fails during helm upgrade and helm rollback', () =>
        loaded(async () => {
          await helmInstall(cluster, `replicaCount=${replicas}`, 'podAnnotations.upgraded=yes');
          await cluster.helm(`rollback ${release} --namespace ${namespace} --wait --timeout 120s`);
        }),
      ),
      step('no request fails while kubectl deletes the pod of one replica', async () => {
        const [victim] = await pods(cluster);
        return loaded(() => cluster.kubectl(`--namespace ${namespace} delete pod ${victim?.metadata.name}`));
      }),
      step('no request fails while every pod is evicted, as kubectl drain does', async () => {
        const victims = await pods(cluster);
        return loaded(async () => {
          for (const victim of victims) await evict(victim);
        });
      }),
      step('no request fails while the signing keys are rotated', () =>
        loaded(() =>
          cluster.kubectl(
            `--namespace ${namespace} annotate --overwrite secret platform-signing-keys platform.io/rotate-keys=e2e`,
          ),
        ),
      ),
      step('every request succeeds after a replica is killed, if clients retry', async () => {
        const [victim] = await pods(cluster);
        return loaded(async () => {
          process.kill(serverProcess(victim), 'SIGKILL');
          await cluster.until('the container is restarted', async () => {
            const { status } = await cluster.kube.json<Pod>(`${podsPath}/${victim?.metadata.name}`);
            return status.containerStatuses?.[0]?.restartCount === 1;
          });
        }, retry);
      }),
      step('a server exits with code 0 on SIGTERM', async () => {
        const [victim] = await pods(cluster);
        const { body } = await cluster.kube.stream(podsPath, {
          query: { watch: true, fieldSelector: `metadata.name=${victim?.metadata.name}`, timeoutSeconds: 60 },
        });
        await cluster.kubectl(`--namespace ${namespace} delete pod ${victim?.metadata.name} --wait=false`);
        strictEqual(await lastExitCode(body), 0);
      }),
      step('helm upgrade scales the release to two replicas', async () => {
        await removeTraffic(cluster);
        await helmInstall(cluster);
      }),
    ];

    /** Evicts a pod as soon as the PodDisruptionBudget allows it. */
    async function evict({ metadata: { name } }: Pod): Promise<void> {
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
      await cluster.until(`${name} is evicted`, async () => {
        try {
          await cluster.kube.json(`${podsPath}/${name}/eviction`, { method: 'POST', body });
          return true;
        } catch (error) {
          if (isKubeError(error, 429)) return false;
          throw error;
        }
      });
    }
  },
};

/** Reads a watch of a pod until the pod is deleted. Returns the last exit code of its container. */
async function lastExitCode(events: Readable): Promise<number | undefined> {
  for await (const line of createInterface({ input: events })) {
    const { type, object } = JSON.parse(line) as { type: string; object: Pod };
    if (type === 'DELETED') return object.status.containerStatuses?.[0]?.state?.terminated?.exitCode;
  }
  throw new Error('the pod was not deleted within a minute');
}
