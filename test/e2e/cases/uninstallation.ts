import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { difference, inventory, type Item } from '../inventory.ts';
import { adminPassword, found, helmInstall, host, logIn, namespace, release } from '../release.ts';
import { step, type Case } from '../steps.ts';

/** `before`: what was in the cluster before the chart was. */
export const uninstallation = (before: readonly Item[]): Case => ({
  title: 'helm uninstall leaves what the notes say and nothing else',
  steps: (cluster) => {
    let notes = '';
    const elsewhere = async (): Promise<string[]> => {
      return difference(before, (await inventory(cluster.kube)).filter(isElsewhere));
    };
    const uninstall = async (): Promise<void> => {
      notes = await cluster.helm(`get notes ${release} --namespace ${namespace}`);
      await cluster.helm(`uninstall ${release} --namespace ${namespace} --wait --timeout 120s`);
    };
    const deleteNamespace = async (): Promise<void> => {
      await cluster.kubectl(`delete namespace ${namespace} --timeout=60s`);
      strictEqual(await found(cluster, `/api/v1/namespaces/${namespace}`), undefined);
    };
    return [
      step('of the whole cluster only the CRDs stay outside the namespace', async () => {
        await uninstall();
        const kept = [
          '+ apiservices.apiregistration.k8s.io v1alpha2.iam.platform.io',
          ...ownCRDs.map((name) => `+ ${crds} ${name}`),
        ];
        await cluster.until('nothing else is left', async () => deepStrictEqual(await elsewhere(), kept));
      }),
      step('in the namespace the commands of the notes take away all that stayed, but what the CRDs hold', async () => {
        // A server that is still ending might make them anew.
        await cluster.until('the pods are gone', async () => !(await inNamespace(cluster)).includes('pods'));
        await follow(cluster, notes);
        const left = await inNamespace(cluster);
        deepStrictEqual(
          left.filter((resource) => !ownCRDs.includes(resource)),
          [],
        );
        ok(left.includes('sessions.iam.platform.io'));
      }),
      step('deleting the namespace completes', deleteNamespace),
      step('a new installation adopts the CRDs that stayed', async () => {
        await helmInstall(cluster, 'crds.keep=false');
        await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
      }),
      step('with crds.keep=false it leaves no CRDs either', async () => {
        await uninstall();
        await cluster.until('nothing is left', async () => deepStrictEqual(await elsewhere(), []));
      }),
      step('deleting the namespace leaves the cluster as it was before', async () => {
        await deleteNamespace();
        deepStrictEqual(difference(before, await inventory(cluster.kube)), []);
      }),
    ];
  },
});

const isElsewhere = (item: Item): boolean =>
  item.namespace !== namespace && !(item.resource === 'namespaces' && item.name === namespace);

const crds = 'customresourcedefinitions.apiextensions.k8s.io';
const ownCRDs = ['loginfailuretables', 'loginhistories', 'sessions', 'users'].map((name) => `${name}.iam.platform.io`);

/** Runs the commands by which the notes delete what the server made. */
async function follow(cluster: Cluster, notes: string): Promise<void> {
  const commands = [...notes.matchAll(/^ +kubectl (-n \S+ delete .*)$/gm)].map(([, command]) => command as string);
  if (commands.length === 0) throw new Error(`the notes name no command that deletes:\n${notes}`);
  for (const command of commands) await cluster.kubectl(command);
}

/** The resources of which the namespace holds objects, but for what every namespace holds. */
async function inNamespace(cluster: Cluster): Promise<string[]> {
  const everywhere = ['configmaps kube-root-ca.crt', 'serviceaccounts default'];
  const items = (await inventory(cluster.kube)).filter((item) => item.namespace === namespace);
  const own = items.filter(({ resource, name }) => !everywhere.includes(`${resource} ${name}`));
  return [...new Set(own.map(({ resource }) => resource))].toSorted();
}
