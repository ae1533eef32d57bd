import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import { seconds } from '../../../hack/cluster/progress.ts';
import { difference, inventory } from '../inventory.ts';
import { residentMemory } from '../node/server-process.ts';
import { adminPassword, helmInstall, host, isReady, logIn, namespace, pods, release } from '../release.ts';
import { step, type Case } from '../steps.ts';

export const installation: Case = {
  title: 'helm installs the chart',
  steps: (cluster) => {
    let start = 0;
    return [
      step('kubectl creates a namespace that enforces the restricted Pod Security Standard', async () => {
        await cluster.kubectl(`create namespace ${namespace}`);
        await cluster.kubectl(`label namespace ${namespace} pod-security.kubernetes.io/enforce=restricted`);
      }),
      step('helm install returns when both replicas are ready', async () => {
        start = performance.now();
        await helmInstall(cluster);
        deepStrictEqual((await pods(cluster)).map(isReady), [true, true]);
      }),
      step('admin gets a token with the generated password', async () => {
        await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster));
        const time = `${seconds(start)} after the start of helm install`;
        return `${time}; resident memory ${(await pods(cluster)).map(residentMemory).join(' and ')} MB`;
      }),
      step('no container of the server has restarted', async () => {
        const restarts = (await pods(cluster)).map(({ status }) => status.containerStatuses?.[0]?.restartCount);
        deepStrictEqual(restarts, [0, 0]);
      }),
      step('helm test --logs reports no problem, skips only the check of Secrets, and deletes its pod', async () => {
        await cluster.kubectl('wait --for=condition=Available apiservice --all --timeout=60s');
        let before: Awaited<ReturnType<typeof inventory>> = [];
        // For some seconds, kube-apiserver responds to lists of new custom resources with 429.
        await cluster.until('every resource can be listed', async () => {
          before = await inventory(cluster.kube);
        });
        const output = await cluster.helm(`test ${release} --namespace ${namespace} --logs`);
        const findings = output.split('\n').filter((line) => /^(?:failed|warning|not checked) /.test(line));
        deepStrictEqual(findings, ['not checked  secrets: needs the right to get secrets in platform-system']);
        match(output, /^0 failed, 0 warning, 1 not checked, 17 ok$/m);
        deepStrictEqual(difference(before, await inventory(cluster.kube)), []);
      }),
      step('the command in the notes of the chart prints the generated password', async () => {
        const notes = await cluster.helm(`get notes ${release} --namespace ${namespace}`);
        const [, command = ''] = /^ +kubectl (.* get secret platform-admin .*) \| base64 -d$/m.exec(notes) ?? [];
        const encoded = await cluster.kubectl(command.replaceAll("'", ''));
        match(Buffer.from(encoded, 'base64').toString('utf8'), /^\S{16,}$/);
        strictEqual(notes.includes('WARNING: plain HTTP'), true);
      }),
    ];
  },
};
