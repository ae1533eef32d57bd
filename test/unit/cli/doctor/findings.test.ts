/** Functions that turn what the cluster reports into findings. */
import { describe, expect, jest, test } from '@jest/globals';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { runChecks } from '../../../../src/cli/doctor/check.ts';
import { explain } from '../../../../src/cli/doctor/checks/availability.ts';
import { unresolved } from '../../../../src/cli/doctor/checks/configuration.ts';
import { connection, connectionFinding, policyFinding } from '../../../../src/cli/doctor/checks/network.ts';
import { cacheFindings, readiness, readinessFindings } from '../../../../src/cli/doctor/checks/reports.ts';
import { attributesOf } from '../../../../src/cli/doctor/checks/rights.ts';
import { podFindings } from '../../../../src/cli/doctor/checks/workload.ts';
import { clockSkew, describeSkew } from '../../../../src/cli/doctor/clock.ts';
import { Commands } from '../../../../src/cli/doctor/commands.ts';
import { Context, type ContextOptions } from '../../../../src/cli/doctor/context.ts';
import { collect } from '../../../fakes/collect.ts';
import { resolveHost } from '../../../../src/cli/doctor/lookup.ts';
import { matches, type Condition, type NetworkPolicy, type Pod } from '../../../../src/cli/doctor/objects.ts';
import { Reader } from '../../../../src/cli/doctor/reader.ts';

const commands = new Commands({ namespace: 'platform-system', kubeconfig: undefined, context: undefined });
const ready: Condition = { type: 'Ready', status: 'True' };

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];
const pod = (conditions: readonly Condition[], container?: Partial<ContainerStatus>): Pod => ({
  metadata: { name: 'a' },
  status: {
    conditions,
    ...(container === undefined
      ? {}
      : {
          containerStatuses: [
            { name: 'an-injected-container', ready: true, restartCount: 7 },
            { name: 'platform-apiserver', ready: false, restartCount: 0, ...container },
          ],
        }),
  },
});

describe('pods', () => {
  test('a ready pod without restarts has no finding', () => {
    expect(podFindings(pod([ready], {}), { commands, namespace: 'platform-system' })).toEqual([]);
  });

  test.each<readonly [string, Pod, string, RegExp, RegExp]>([
    [
      'that is not scheduled',
      pod([{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }]),
      'failed',
      /is not scheduled: 0\/3 nodes are available$/,
      /describe pod a$/,
    ],
    [
      'whose image cannot be pulled',
      pod([], { state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"' } } }),
      'failed',
      /does not start: ImagePullBackOff Back-off pulling image "x"$/,
      /describe pod a$/,
    ],
    [
      'that crashes',
      pod([], {
        restartCount: 4,
        state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
        lastState: { terminated: { reason: 'Error', exitCode: 1 } },
      }),
      'failed',
      /does not start: CrashLoopBackOff \(restarts: 4, last: Error with exit code 1\)$/,
      /logs a --tail=20 --previous$/,
    ],
    [
      'that is not ready',
      pod([{ type: 'Ready', status: 'False' }], { state: { running: {} } }),
      'failed',
      /is not ready$/,
      /logs a --tail=20$/,
    ],
    [
      'whose container has not started',
      pod([{ type: 'Ready', status: 'False' }], { state: { waiting: { reason: 'ContainerCreating' } } }),
      'failed',
      /is not ready$/,
      /describe pod a$/,
    ],
    [
      'that ran out of memory',
      pod([ready], { restartCount: 1, lastState: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }),
      'warning',
      /has restarted \(restarts: 1, last: OOMKilled with exit code 137\)$/,
      /--previous$/,
    ],
  ])(
    'a pod %s has a finding with the reason and the command that shows details',
    (_, one, status, message, command) => {
      expect(podFindings(one, { commands, namespace: 'platform-system' })).toEqual([
        { status, message: expect.stringMatching(message), command: expect.stringMatching(command) },
      ]);
    },
  );
});

const policy = (spec: NetworkPolicy['spec']): NetworkPolicy => ({ metadata: { name: 'p' }, spec });

describe('NetworkPolicies', () => {
  const some = [{ podSelector: {} }];

  test.each<readonly [string, readonly NetworkPolicy[], string, RegExp]>([
    ['no problem without a NetworkPolicy', [], 'ok', /no NetworkPolicy/],
    ['a failure for a policy without rules', [policy({})], 'failed', /do not allow .* port 10250/],
    [
      'a failure for a policy that allows only a different port',
      [policy({ ingress: [{ ports: [{ port: 443 }] }] })],
      'failed',
      /do not allow/,
    ],
    [
      'a failure for a policy that allows only UDP',
      [policy({ ingress: [{ ports: [{ port: 10_250, protocol: 'UDP' }] }] })],
      'failed',
      /do not allow/,
    ],
    ['no problem for a policy that allows all ports', [policy({ ingress: [{}] })], 'ok', /from all addresses$/],
    [
      'no problem for a policy that allows the named port',
      [policy({ ingress: [{ ports: [{ port: 'aggregated' }] }] })],
      'ok',
      /from all/,
    ],
    [
      'no problem for a policy that allows a port range that includes the port',
      [policy({ ingress: [{ ports: [{ port: 1, endPort: 20_000 }] }] })],
      'ok',
      /from all/,
    ],
    [
      'the senders that a policy must include',
      [policy({ ingress: [{ from: some }] })],
      'ok',
      /must include the addresses of kube-apiserver$/,
    ],
    [
      'no problem if a second policy allows all senders',
      [policy({ ingress: [{ from: some }] }), policy({ ingress: [{}] })],
      'ok',
      /from all/,
    ],
    [
      'the connections that an egress policy must allow',
      [policy({ policyTypes: ['Egress'] })],
      'ok',
      /must also allow the pods to connect/,
    ],
  ])('the doctor reports %s', (_, policies, status, message) => {
    const { message: text, ...finding } = policyFinding(policies, 10_250, 'show');
    expect(text).toMatch(message);
    expect(finding).toEqual(status === 'failed' ? { status, command: 'show' } : { status });
  });

  test.each([
    [{}, 'matches'],
    [{ matchLabels: { a: '1' } }, 'matches'],
    [{ matchLabels: { a: '2' } }, 'does not match'],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, 'matches'],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, 'does not match'],
    [{ matchExpressions: [{ key: 'b', operator: 'NotIn', values: ['1'] }] }, 'matches'],
    [{ matchExpressions: [{ key: 'b', operator: 'Exists' }] }, 'does not match'],
    [{ matchExpressions: [{ key: 'b', operator: 'DoesNotExist' }] }, 'matches'],
  ])('the selector %j %s the labels a=1', (selector, expected) => {
    expect(matches(selector, { a: '1' }) ? 'matches' : 'does not match').toBe(expected);
  });
});

const metrics = (bytes: number, age: number): string => `# HELP platform_apiserver_store_bytes Bytes
platform_apiserver_store_bytes{resource="nodes"} ${bytes}
platform_apiserver_store_bytes{resource="pods"} 1048576
platform_apiserver_store_limit_bytes 1.048576e+07
platform_apiserver_store_age_seconds{resource="nodes"} ${age}
`;

describe('reports of a replica', () => {
  test('the doctor reports a failure or a warning for each check of readyz?verbose that has a problem', () => {
    const text = [
      '[+]configuration ok (warning: the latest configuration was rejected: a: must be b)',
      '[-]users failed: not read yet',
      '[+]logs ok',
      'readyz check failed',
    ].join('\n');
    expect(readinessFindings(text, '192.0.2.1:10250', 'show')).toEqual([
      {
        status: 'warning',
        message: '192.0.2.1:10250: configuration: the latest configuration was rejected: a: must be b',
        command: 'show',
      },
      { status: 'failed', message: '192.0.2.1:10250: users: not read yet', command: 'show' },
    ]);
    expect(readinessFindings('[+]logs ok\nreadyz check passed\n', 'a', 'show')).toEqual([
      { status: 'ok', message: 'a reports no problem' },
    ]);
  });

  test.each([
    [1_048_576, 10, [['ok', 'a caches 2.0 MiB of 10.0 MiB (cache.maxBytes)']]],
    [
      9_437_184,
      130,
      [
        [
          'warning',
          'a: the cache is nearly full: 10.0 MiB of 10.0 MiB (cache.maxBytes); requests for further resources get 503',
        ],
        ['warning', 'a: the cache of nodes has received nothing for 130 s'],
      ],
    ],
  ])(
    'the doctor compares a cache of nodes of %d bytes that is %d s old with the thresholds',
    (bytes, age, expected) => {
      const found = cacheFindings(metrics(bytes, age), 'a', 'raise');
      expect(found.map(({ status, message }) => [status, message])).toEqual(expected);
    },
  );
});

test.each([
  [
    'failing or missing response from https://10.0.0.1:10250/apis/x/v1: bad status from https://10.0.0.1: 401',
    /--proxy-client-cert-file/,
  ],
  [
    'Get "https://10.0.0.1:10250": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    /trust/,
  ],
  ['Get "https://10.0.0.1:10250": context deadline exceeded', /Open port 10260 from/],
  ['dial tcp 10.0.0.1:10250: connect: connection refused', /Open port 10260 from/],
  ['endpoints for service/x have no addresses', /^$/],
])('the explanation of the message %j of kube-aggregator matches %s', (message, expected) => {
  expect(explain(message, 10_260)).toMatch(expected);
});

test.each([
  [200, 'ok', 'ok', /^kube-apiserver connects to the port aggregated/],
  [503, '{"kind":"Status","message":"no endpoints available for service \\"a\\""}', 'not checked', /^needs Endpoints/],
  [
    503,
    'error trying to reach service: dial tcp 10.0.0.1:10250: i/o timeout\n',
    'failed',
    /may block: .* i\/o timeout$/,
  ],
])(
  'the finding about a response of the Service proxy with the status %d and the body %j is "%s"',
  (code, text, status, message) => {
    expect(connectionFinding(code, text, 'show')).toMatchObject({ status, message: expect.stringMatching(message) });
  },
);

test.each([
  [false, 'helm -n platform-system test platform-apiserver --logs'],
  [true, undefined],
])(
  'the doctor recommends helm test for an unreachable replica, but not in a pod: in a pod %j, command %j',
  async (isInPod, command) => {
    const context = {
      commands,
      caller: { isInPod, serviceAccountToken: () => Promise.resolve('token') },
      host: 'localhost',
      release: () => Promise.resolve('platform-apiserver'),
      apiService: () => Promise.resolve(undefined),
      endpoints: () => Promise.resolve([{ address: '127.0.0.1', port: 1 }]),
    } as unknown as Context;
    const [result] = await collect(runChecks([{ ...readiness, needs: [] }], context));
    expect(result?.findings).toEqual([
      { status: 'not checked', message: expect.stringMatching(/^needs a connection from this machine/), command },
    ]);
  },
);

test('the doctor reports a network failure if kube-apiserver cannot connect to the pods in time', async () => {
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort());
  const client = {
    json: () => Promise.reject(new Error('unused')),
    stream: (_: string, { signal }: KubeRequest = {}) => Promise.reject(unreachable(signal?.reason)),
  };
  const context = { reader: new Reader(client), commands, namespace: 'a', serviceName: 'b' } as unknown as Context;
  const [result] = await collect(runChecks([{ ...connection, needs: [] }], context));
  expect(timeout).toHaveBeenCalledWith(35_000);
  timeout.mockRestore();
  expect(result?.findings).toEqual([
    {
      status: 'failed',
      message: expect.stringMatching(
        /^kube-apiserver did not connect to the port aggregated of the pods within 35 s: a/,
      ),
      command: 'kubectl -n platform-system describe networkpolicies',
    },
  ]);
});

describe('host names', () => {
  const uris = ['a', 'b', 'c'].map((key) => ({ key, uri: `https://${key}.example/` }));

  test('host names are resolved concurrently, and problems are reported in the order of the names', async () => {
    const all = Promise.withResolvers<void>();
    let count = 0;
    const lookup = async (host: string): Promise<void> => {
      count += 1;
      if (count === uris.length) all.resolve();
      await all.promise;
      if (host !== 'b.example')
        throw Object.assign(new Error(host), { code: host === 'a.example' ? 'ENOTFOUND' : 'ETIMEOUT' });
    };
    const found = await collect(unresolved({ lookup }, uris));
    expect(found.map(({ status, message }) => [status, message])).toEqual([
      ['warning', 'a: the host a.example does not resolve on this machine'],
      ['not checked', 'needs DNS on this machine to resolve c.example (ETIMEOUT)'],
    ]);
  });

  test('a resolver that does not respond causes a timeout', async () => {
    await expect(resolveHost('a.example', () => new Promise(() => undefined), 10)).rejects.toMatchObject({
      code: 'ETIMEOUT',
    });
    await expect(resolveHost('a.example', () => Promise.resolve())).resolves.toBeUndefined();
  });
});

describe('the clock', () => {
  const sent = new Date('2026-01-01T00:00:00Z').getTime();
  const date = new Date(sent).toUTCString();
  test.each([
    ['with the same time as the server has no skew', sent, sent + 500, 0],
    ['that differs from the Date header by less than a second has no skew', sent + 900, sent + 950, 0],
    ['that differs by less than the tolerance has no skew', sent + 10_900, sent + 11_000, 0],
    ['that is ahead has a positive skew', sent + 31_000, sent + 31_100, 30_000],
    ['that is behind has a negative skew', sent - 40_000, sent - 35_000, -35_000],
    ['that is behind by less than the duration of the request has no skew', sent - 5_000, sent + 20_000, 0],
  ])('a clock %s', (_, from, to, expected) => {
    expect(clockSkew(date, from, to)).toBe(expected);
  });

  test('a clock has no skew if the response has no Date header, and a skew is described in whole seconds', () => {
    expect(clockSkew(undefined, sent, sent)).toBe(0);
    expect([describeSkew(30_400), describeSkew(-30_400)]).toEqual(['30 s ahead of', '30 s behind']);
  });
});

test('the rules of a role cause one access review for each verb, resource and name', () => {
  const rules = [
    { apiGroups: ['iam.platform.io'], resources: ['users/status'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['configmaps'], resourceNames: ['a', 'b'], verbs: ['get'] },
  ];
  expect(attributesOf({ namespace: 'n', rules })).toEqual([
    { verb: 'patch', group: 'iam.platform.io', resource: 'users', subresource: 'status', namespace: 'n' },
    { verb: 'get', group: '', resource: 'configmaps', name: 'a', namespace: 'n' },
    { verb: 'get', group: '', resource: 'configmaps', name: 'b', namespace: 'n' },
  ]);
  expect(attributesOf({ namespace: undefined, rules })[0]).not.toHaveProperty('namespace');
});

test('the commands in findings contain the flags of the doctor, quoted for a shell', () => {
  const given = new Commands({ namespace: 'n', kubeconfig: "/tmp/it's", context: 'prod' });
  expect(given.inNamespace`get pods`).toBe(`kubectl --kubeconfig='/tmp/it'\\''s' --context=prod -n n get pods`);
  expect(given.helm`test r`).toBe(`helm --kubeconfig='/tmp/it'\\''s' --kube-context=prod -n n test r`);
  expect(commands.kubectl`auth whoami`).toBe('kubectl auth whoami');
});

test('names from the cluster are quoted in the commands of findings', () => {
  const name = "x$(touch /tmp/x)'";
  const quoted = `'x$(touch /tmp/x)'\\'''`;
  expect(commands.inNamespace`edit configmap ${name}`).toBe(`kubectl -n platform-system edit configmap ${quoted}`);
  expect(commands.restore(name)).toBe(
    [
      `helm -n platform-system get manifest ${quoted}`,
      `kubectl annotate --local --overwrite -o yaml -f - meta.helm.sh/release-name=${quoted} meta.helm.sh/release-namespace=platform-system`,
      'kubectl apply --server-side --force-conflicts --field-manager=helm -f -',
    ].join(' | '),
  );
});

test.each([
  ['platform', 'platform'],
  ['--kubeconfig=/tmp/x', 'platform-apiserver'],
  ['x$(touch /tmp/x)', 'platform-apiserver'],
])('the release name %j in the annotation of the Deployment results in the release %s', async (name, release) => {
  const deployment = { metadata: { name: 'platform-apiserver', annotations: { 'meta.helm.sh/release-name': name } } };
  const reader = new Reader({
    json: <T>() => Promise.resolve(deployment as T),
    stream: () => Promise.reject(new Error()),
  });
  const context = new Context({ reader, namespace: 'platform-system' } as unknown as ContextOptions);
  expect(await context.release()).toBe(release);
});
