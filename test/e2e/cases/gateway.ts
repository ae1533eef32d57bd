import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Exec, KubeConfig, type V1Status } from '@kubernetes/client-node';
import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { median } from '../../bench/statistics.ts';
import type { Cluster } from '../cluster.ts';
import { names, tag } from '../images/all.ts';
import { tool } from '../machine/packages.ts';
import { createUser, found, host, kubeconfig, logIn, namespace, passwordSecret } from '../release.ts';
import { step, type Case } from '../steps.ts';

const person = 'kim';
const group = 'shopkeepers';
const shop = 'shop';
const password = 'kim keeps 17 shops';

/** Ways to send a user's request: to kube-apiserver with impersonation, and to the platform with the user's token. */
interface Way {
  readonly name: string;
  readonly flags: readonly string[];
}

/** kubectl's two upgrade protocols. */
const transports = {
  WebSockets: {},
  SPDY: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' },
} as const;

/** Returns a text of this length without short repetitions. */
const much = Array.from({ length: 200_000 }, (_, index) => `${index * 7919}`).join('\n');

export const gateway: Case = {
  title: 'A user without administrator rights works with kubectl through the server',
  steps: (cluster) => {
    let kubectl = '';
    let ways: readonly Way[] = [];
    let token = '';
    const file = (name: string): string => join(cluster.folder, name);

    const run = (way: Way, args: readonly string[], env: object = {}, input = ''): Promise<Executed> =>
      execute(kubectl, [...way.flags, ...args], { env: { ...env }, input, timeout: 60_000 });
    const start = (way: Way, args: readonly string[], env: object = {}): ChildProcessWithoutNullStreams =>
      spawn(kubectl, [...way.flags, ...args], { env: { ...process.env, ...env } });
    /** Runs kubectl directly and through the platform, and requires equal output and exit codes. */
    const same = async (args: readonly string[], env: object = {}, input = ''): Promise<Executed> => {
      const [one, other] = await Promise.all(ways.map((way) => run(way, args, env, input)));
      deepStrictEqual(other, one);
      return other as Executed;
    };

    return [
      step('the user kim gets the right to edit one namespace with two running pods', async () => {
        kubectl = (await programs(['kubectl'])).kubectl;
        await prepare(cluster);
        ({ token, ways } = await waysOf(cluster));
        await cluster.kubectl(`--namespace ${shop} wait --for=condition=Ready pod/till --timeout=60s`);
      }),
      step('kubectl auth whoami prints the username kim', async () => {
        const { stdout } = await same(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']);
        strictEqual(stdout, person);
      }),
      step('kubectl logs and kubectl logs -f print the log to its end', async () => {
        strictEqual((await same(['logs', 'talker', '-f'])).stdout, '1\n2\n3\n');
        strictEqual((await same(['logs', 'talker', '--tail=1'])).stdout, '3\n');
      }),
      ...Object.entries(transports).flatMap(([transport, env]) => [
        step(`kubectl exec over ${transport} returns output, errors and the exit code`, async () => {
          const { code, stdout, stderr } = await same(
            ['exec', 'till', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'],
            env,
          );
          deepStrictEqual({ code, stdout }, { code: 7, stdout: 'out\n' });
          match(stderr, /^err\n/);
        }),
        step(`kubectl exec -i over ${transport} transfers megabytes in both directions`, async () => {
          strictEqual((await same(['exec', '-i', 'till', '--', 'cat'], env, much)).stdout, much);
        }),
        step(`kubectl exec -it over ${transport} provides a terminal`, async () => {
          for (const way of ways) {
            const words = [kubectl, ...way.flags, 'exec', '-it', 'till', '--', 'sh'];
            // `script` provides the terminal that kubectl requires for -t.
            const { stdout } = await execute(tool('script'), ['-qec', words.join(' '), '/dev/null'], {
              env,
              input: '[ -t 1 ] && echo a "terminal"; exit\n',
              timeout: 30_000,
            });
            match(stdout, /^a terminal\r?$/m);
          }
        }),
        step(`kubectl attach over ${transport} prints the output of the pod`, async () => {
          for (const way of ways) {
            const attached = start(way, ['attach', 'till'], env);
            const [first] = (await once(attached.stdout, 'data')) as [Buffer];
            match(first.toString('utf8'), /tick/);
            attached.kill();
          }
        }),
        step(`kubectl cp over ${transport} copies files in both directions`, async () => {
          writeFileSync(file('there'), much);
          for (const way of ways) {
            const there = await run(way, ['cp', file('there'), 'till:/tmp/there'], env);
            deepStrictEqual({ ...there, stdout: '' }, { code: 0, stdout: '', stderr: '' });
            strictEqual((await run(way, ['cp', 'till:/tmp/there', file('back')], env)).code, 0);
            ok(readFileSync(file('back'), 'utf8') === much);
          }
        }),
        step(`kubectl port-forward over ${transport} forwards requests`, async () => {
          for (const way of ways) {
            const forward = start(way, ['port-forward', 'pod/till', ':7777'], env);
            try {
              const [line] = (await once(forward.stdout, 'data')) as [Buffer];
              const port = Number(/127\.0\.0\.1:(\d+)/.exec(line.toString('utf8'))?.[1]);
              strictEqual(await text(connect({ host: '127.0.0.1', port })), 'pong\n');
            } finally {
              forward.kill();
            }
          }
        }),
        step(
          `kubectl exec over ${transport} has about the same round-trip time through the server as directly`,
          async () => {
            const figures: string[] = [];
            for (const way of ways)
              figures.push(`${way.name} ${(await roundTrip(start(way, echo, env))).toFixed(2)} ms`);
            return figures.join(', ');
          },
        ),
      ]),
      step('the Kubernetes client for JavaScript executes a command in a pod', async () => {
        const [itself, through] = await Promise.all(
          ['kubeconfig', 'kim.kubeconfig'].map((name) => byScript(file(name))),
        );
        deepStrictEqual(through, itself);
        deepStrictEqual(itself, { causes: [{ message: '7', reason: 'ExitCode' }], stdout: 'out\n', stderr: 'err\n' });
      }),
      step('requests that RBAC forbids are rejected with the message of kube-apiserver', async () => {
        const { code, stderr } = await same(['exec', '--namespace', 'kube-system', 'deploy/coredns', '--', 'true']);
        strictEqual(code, 1);
        match(stderr, /User "kim" cannot get resource/);
      }),
      step('kubectl exec and kubectl logs -f exit when the session of the token is revoked', async () => {
        const [, way] = ways;
        if (way === undefined) throw new Error('the way through the server is missing');
        const streams = [
          ['exec', 'till', '--', 'sleep', '1000'],
          ['logs', '-f', 'till'],
        ].map((args) => start(way, args));
        const ended = streams.map((stream) => once(stream, 'exit'));
        await once(streams[1]?.stdout ?? process.stdout, 'data');
        const form = { token, client_id: 'platform', client_secret: 'platform' };
        strictEqual((await cluster.inside.request(`http://${host}/oauth/revoke`, { form })).status, 200);
        await Promise.all(ended);
        strictEqual((await run(way, ['get', 'pods'])).code, 1);
      }),
      step('deleting a user deletes the Secret with the password', async () => {
        const uid = await cluster.kubectl(`get users.iam.platform.io ${person} -o jsonpath={.metadata.uid}`);
        await cluster.kubectl(`delete users.iam.platform.io ${person}`);
        await cluster.kubectl(`delete namespace ${shop} --timeout=60s`);
        const secret = `/api/v1/namespaces/${namespace}/secrets/${passwordSecret(uid)}`;
        await cluster.until("kim's password is gone", async () => (await found(cluster, secret)) === undefined);
      }),
    ];
  },
};

const echo = ['exec', '-i', 'till', '--', 'cat'];

/** Runs the script and returns its exit code and output. */
async function byScript(path: string): Promise<unknown> {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  const words = ['sh', '-c', 'echo out; echo err >&2; exit 7'];
  const { details } = await new Promise<V1Status>((resolve, reject) => {
    new Exec(config).exec(shop, 'till', 'till', words, stdout, stderr, null, false, resolve).catch(reject);
  });
  stdout.end();
  stderr.end();
  const [out, err] = await printed;
  return { causes: details?.causes?.map(({ message, reason }) => ({ message, reason })), stdout: out, stderr: err };
}

/** Returns the median in milliseconds. */
async function roundTrip(cat: ChildProcessWithoutNullStreams): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < 300; count += 1) {
    const begin = performance.now();
    cat.stdin.write('x\n');
    await once(cat.stdout, 'data');
    // Warm up the connection.
    if (count >= 50) times.push(performance.now() - begin);
  }
  cat.stdin.end();
  await once(cat, 'exit');
  return median(times);
}

async function prepare({ kube }: Cluster): Promise<void> {
  const post = <T>(path: string, body: object): Promise<T> => kube.json<T>(path, { method: 'POST', body });
  await createUser(kube, { username: person, password, groups: [group] });
  await post('/api/v1/namespaces', { metadata: { name: shop } });
  const apiGroup = 'rbac.authorization.k8s.io';
  await post(`/apis/${apiGroup}/v1/namespaces/${shop}/rolebindings`, {
    metadata: { name: group },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup, kind: 'Group', name: group }],
  });
  const pod = (name: string, script: string, more: object = {}): Promise<unknown> =>
    post(`/api/v1/namespaces/${shop}/pods`, {
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name, image: `${names.client}:${tag}`, command: ['sh', '-c', script] }],
        ...more,
      },
    });
  await post(`/api/v1/namespaces/${shop}/serviceaccounts`, { metadata: { name: 'default' } }).catch(() => undefined);
  await pod('till', '(while true; do echo pong | nc -l -p 7777; done) & while true; do echo tick; sleep 1; done');
  await pod('talker', 'for line in 1 2 3; do echo $line; sleep 1; done', { restartPolicy: 'Never' });
}

async function waysOf(cluster: Cluster): Promise<{ readonly ways: readonly Way[]; readonly token: string }> {
  const { folder, inside } = cluster;
  let token = '';
  await cluster.until('kim can log in', async () => {
    token = (await logIn(inside, `http://${host}`, password, {}, person)).access_token;
  });
  const through = join(folder, 'kim.kubeconfig');
  writeFileSync(through, await kubeconfig(cluster, token, shop), { mode: 0o600 });
  const groups = [group, 'system:authenticated'].flatMap((name) => ['--as-group', name]);
  const direct = ['--kubeconfig', join(folder, 'kubeconfig'), '--namespace', shop, '--as', person, ...groups];
  return {
    token,
    ways: [
      { name: 'directly', flags: direct },
      { name: 'through the server', flags: ['--kubeconfig', through] },
    ],
  };
}
