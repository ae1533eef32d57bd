import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Cluster } from '../cluster.ts';
import { names, previousServerImage } from '../images/all.ts';
import { previousVersion, type PreviousVersion } from '../images/previous.ts';
import { under } from '../load/load.ts';
import { prepareTraffic, traffic, type Visitor } from '../load/traffic.ts';
import { importImage } from '../node/containerd.ts';
import { nodeName } from '../node/identities.ts';
import {
  adminPassword,
  apiService,
  authority,
  chart,
  host,
  listNodes,
  logIn,
  namespace,
  refresh,
  release,
  settled,
  type Tokens,
} from '../release.ts';
import { step, type Case } from '../steps.ts';

const guide = join(import.meta.dirname, '../../../docs/guides/upgrade.md');
const base = `http://${host}`;
const replicas = 2;
/** Seconds. */
const accessTokenMaxAge = 1_800;

export const upgrade: Case = {
  title: 'helm upgrade replaces the previous version, and helm rollback restores it',
  steps: (cluster) => {
    let previous: PreviousVersion;
    const values = join(cluster.folder, 'values.yaml');
    let visitor: Visitor;
    let tokens: Tokens;
    let before: unknown;

    /** Runs the command of the upgrade guide while clients use the server and retry for this many milliseconds. */
    const loaded = async (command: string, retry = 0): Promise<string> =>
      under(await traffic(cluster, visitor, retry), async () => {
        await cluster.helm(documented(command).replace('$CHART', chart).replace('values.yaml', values));
        await settled(cluster, replicas);
      });
    /** Verifies that this version runs and accepts the tokens of the other version, and gets new tokens. */
    const haveRemained = async (tag: string): Promise<void> => {
      deepStrictEqual(await runningTags(cluster), [tag, tag]);
      deepStrictEqual(await listNodes(cluster.inside, base, tokens.access_token), [nodeName]);
      await refresh(cluster.inside, base, tokens.refresh_token);
      tokens = await logIn(cluster.inside, base, await adminPassword(cluster));
      strictEqual(tokens.expires_in, accessTokenMaxAge);
      await logIn(cluster.inside, base, visitor.password, {}, visitor.username);
      deepStrictEqual(await kept(cluster), before);
    };
    return [
      step('helm installs the previous version', async () => {
        previous = await previousVersion();
        await importImage(await previousServerImage(previous));
        writeValues(values, previous.tag);
        const flags = `--namespace ${namespace} --create-namespace --values ${values} --wait --timeout 120s`;
        await cluster.helm(`install ${release} ${previous.chart} ${flags}`);
        // kube-apiserver discovers the new API a few seconds after the replicas are ready.
        await cluster.until('kube-apiserver forwards requests to the server', () =>
          cluster.kube.json('/apis/resources.platform.io/v1alpha3/nodes').then(
            () => true,
            () => false,
          ),
        );
        visitor = await prepareTraffic(cluster);
        tokens = await logIn(cluster.inside, base, await adminPassword(cluster));
        before = await kept(cluster);
      }),
      step('clients get a response to every request during the documented helm upgrade, if they retry', async () => {
        writeValues(values, cluster.image.tag);
        // When a server of the previous version stops, it may reset connections (CHANGELOG.md, 3.0.0).
        return loaded('upgrade', 10_000);
      }),
      step('accounts, tokens, keys and the configuration remain after the upgrade', () =>
        haveRemained(cluster.image.tag),
      ),
      step('no request fails during the documented helm rollback', () => loaded('rollback')),
      step('accounts, tokens, keys and the configuration remain after the rollback', () => haveRemained(previous.tag)),
    ];
  },
};

/** Returns the helm command in the upgrade guide, without the word helm. */
function documented(command: string): string {
  const [, words] = new RegExp(`^ *helm (${command} .*)$`, 'm').exec(readFileSync(guide, 'utf8')) ?? [];
  ok(words !== undefined, `${guide} contains no line that starts with helm ${command}`);
  return words;
}

const writeValues = (file: string, tag: string): void =>
  writeFileSync(
    file,
    stringify({
      image: { repository: names.server, tag },
      replicaCount: replicas,
      config: { authentication: { accessTokenMaxAge: `${accessTokenMaxAge}s` } },
    }),
  );

/** Returns the tags of the images of all servers. */
async function runningTags(cluster: Cluster): Promise<string[]> {
  const images = '-o=jsonpath={.items[*].spec.containers[0].image}';
  const text = await cluster.kubectl(
    `--namespace ${namespace} get pods --selector app.kubernetes.io/name=${release}`,
    images,
  );
  return text.split(' ').map((image) => image.replace(`${names.server}:`, ''));
}

/** Returns what an upgrade must not change. */
async function kept(cluster: Cluster): Promise<unknown> {
  const { spec } = await cluster.kube.json<{ spec: { caBundle: string } }>(apiService);
  const { keys } = JSON.parse((await cluster.inside.request(`${base}/oauth/keys`)).body) as { keys: { kid: string }[] };
  return {
    password: await adminPassword(cluster),
    authority: await authority(cluster),
    caBundle: spec.caBundle,
    signingKeys: keys.map(({ kid }) => kid).toSorted(),
  };
}
