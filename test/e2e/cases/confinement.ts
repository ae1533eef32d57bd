import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { namespace, pods, release } from '../release.ts';
import { step, type Case } from '../steps.ts';

export const confinement: Case = {
  title: 'The server runs with restricted privileges',
  steps: (cluster) => [
    step(
      'the server runs as user 65532 with a seccomp filter, without capabilities and without a way to gain them',
      async () => {
        const text = await inServer(cluster, "fs.readFileSync('/proc/1/status', 'utf8')");
        const status = Object.fromEntries(text.split('\n').map((line) => line.split(/:\s+/, 2) as [string, string]));
        const none = '0'.repeat(16);
        deepStrictEqual(
          ['Uid', 'Gid', 'CapEff', 'CapPrm', 'CapBnd', 'NoNewPrivs', 'Seccomp'].map((name) => status[name]),
          [ids, ids, none, none, none, '1', '2'],
        );
      },
    ),
    step('the server cannot write to any folder', async () => {
      for (const folder of ['', '/app', '/tmp', '/usr/local/bin'])
        strictEqual((await inServer(cluster, attempt(folder))).trim(), 'EROFS', folder);
    }),
    step('the image of the server has no shell', async () => {
      const shells = "['/bin/sh', '/bin/bash', '/usr/bin/sh'].some((path) => fs.existsSync(path))";
      strictEqual((await inServer(cluster, shells)).trim(), 'false');
    }),
    step('the kubelet reports the server as live and ready', async () => {
      for (const { status } of await pods(cluster))
        for (const path of ['livez', 'readyz'])
          strictEqual((await cluster.inside.request(`http://${status.podIP}:9090/${path}`)).status, 200);
      const query = { fieldSelector: 'reason=Unhealthy' };
      const events = await cluster.kube.json<{ items: { message: string }[] }>(
        `/api/v1/namespaces/${namespace}/events`,
        { query },
      );
      // Before a server listens, its startup probe may fail, and until it has filled its caches it is unready.
      const messages = events.items
        .map(({ message }) => message)
        .filter((message) => !/^Startup|^Readiness.* 503$/.test(message));
      deepStrictEqual(messages, []);
    }),
  ],
};

const attempt = (folder: string): string =>
  `(() => { try { fs.writeFileSync('${folder}/x', ''); return 'written' } catch ({ code }) { return code } })()`;

const ids = Array.from({ length: 4 }, () => '65532').join('\t');

/** Evaluates an expression in a second process in the server's container. */
const inServer = (cluster: Cluster, expression: string): Promise<string> =>
  cluster.kubectl(`--namespace ${namespace} exec deployment/${release} -- node --print`, expression);
