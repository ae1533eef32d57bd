import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { difference, inventory, type Item } from '../inventory.ts';
import { adminPassword, found, helmInstall, host, logIn, namespace, release } from '../release.ts';
import { step, type Case } from '../steps.ts';

/** `before` is the content of the cluster before the chart was installed. */
export const uninstallation = (before: readonly Item[]): Case => ({
  title: 'helm uninstall leaves only the objects that the notes of the chart list',
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
      step('only the CRDs and their APIService remain outside the namespace after helm uninstall', async () => {
        await uninstall();
        const kept = [
          '+ apiservices.apiregistration.k8s.io v1alpha2.iam.platform.io',
          ...ownCRDs.map((name) => `+ ${crds} ${name}`),
        ];
        await cluster.until('nothing else is left', async () => deepStrictEqual(await elsewhere(), kept));
      }),
      step(
        'the commands in the notes of the chart delete everything in the namespace except custom resources',
        async () => {
          // A terminating server could create deleted objects again.
          await cluster.until('the pods are gone', async () => !(await inNamespace(cluster)).includes('pods'));
          await follow(cluster, notes);
          const left = await inNamespace(cluster);
          deepStrictEqual(
            left.filter((resource) => !ownCRDs.includes(resource)),
            [],
          );
          ok(left.includes('sessions.iam.platform.io'));
        },
      ),
      step('the namespace of the server can be deleted', deleteNamespace),
      step('a new installation of the chart adopts the remaining CRDs', async () => {
        await helmInstall(cluster, 'crds.keep=false');
        await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
      }),
      step('helm uninstall with crds.keep=false also deletes the CRDs', async () => {
        await uninstall();
        await cluster.until('nothing is left', async () => deepStrictEqual(await elsewhere(), []));
      }),
      step('deleting the namespace removes everything that the chart added to the cluster', async () => {
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

/** Runs the cleanup commands of the install notes. */
async function follow(cluster: Cluster, notes: string): Promise<void> {
  const commands = [...notes.matchAll(/^ +kubectl (-n \S+ delete .*)$/gm)].map(([, command]) => command as string);
  if (commands.length === 0) throw new Error(`the notes name no command that deletes:\n${notes}`);
  for (const command of commands) await cluster.kubectl(command);
}

/** Returns the resources with objects in the namespace, except those that every namespace has. */
async function inNamespace(cluster: Cluster): Promise<string[]> {
  const everywhere = ['configmaps kube-root-ca.crt', 'serviceaccounts default'];
  const items = (await inventory(cluster.kube)).filter((item) => item.namespace === namespace);
  const own = items.filter(({ resource, name }) => !everywhere.includes(`${resource} ${name}`));
  return [...new Set(own.map(({ resource }) => resource))].toSorted();
}
