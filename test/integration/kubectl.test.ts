/** kubectl through kube-apiserver, in the cluster's version and in a version that is years older. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { curl } from '../labs/integration/curl.ts';
import { described } from '../labs/integration/described.ts';
import { apisPath } from '../labs/integration/http.ts';
import {
  bind,
  createClusterRole,
  createNode,
  nodePath,
  nodes,
  patch,
  remove,
  removeClusterRole,
  unbind,
  type KubeList,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { kubectl, otherKubectl, rows, succeed, type Kubectl } from '../labs/integration/kubectl.ts';
import { lab } from '../labs/integration/lab.ts';
import { startProgram } from '../labs/integration/program.ts';
import { apiVersion, readNodes, servedNodes } from '../labs/integration/served.ts';

const ours = 'nodes.resources.platform.io';

/** Returns a table without the column AGE, which grows. */
function withoutAge(table: string): string[][] {
  const cells = rows(table);
  const age = cells[0]?.indexOf('AGE') ?? -1;
  return age === -1 ? cells : cells.map((row) => row.toSpliced(age, 1));
}

const manifest = (): string => join(lab().dir, 'node.json');

/** Returns what `auth can-i` prints. */
const may = async (client: Kubectl, verb: string, ...as: readonly string[]): Promise<string> =>
  (await client('auth', 'can-i', verb, ours, ...as)).stdout.trim();

// kube-apiserver may not describe nodes immediately after its start, and the descriptions of this server are based on
// those of kube-apiserver.
beforeAll(described, 240_000);

describe.each([
  ["the cluster's version", kubectl],
  ['another version', otherKubectl],
])('kubectl in %s', (_, client) => {
  test.each([
    [[]],
    [['-o', 'wide']],
    [['--show-labels']],
    [['-L', 'kubernetes.io/hostname,topology.kubernetes.io/zone']],
    [['-o', 'custom-columns=N:.metadata.name,V:.status.nodeInfo.kubeletVersion,T:.spec.taints[*].key']],
    [['-o', 'jsonpath={range .items[*]}{.metadata.name} {.status.capacity.cpu}{"\\n"}{end}']],
    [['-o', 'go-template={{range .items}}{{.metadata.uid}}{{"\\n"}}{{end}}']],
    [['-l', 'node-role.kubernetes.io/worker']],
    [['-l', 'kubernetes.io/hostname in (node-1,node-4),kubernetes.io/arch!=s390x']],
    [['-l', '!node-role.kubernetes.io/worker', '-o', 'wide']],
    [['--field-selector', 'metadata.name=node-3']],
    [['--field-selector', 'spec.unschedulable=true,metadata.name!=node-1', '-o', 'wide']],
    [['--sort-by', '.status.nodeInfo.kubeletVersion']],
    [['--sort-by', '{.metadata.uid}', '-o', 'wide']],
    [['--chunk-size=3', '-o', 'wide']],
    [['node-5', 'node-2']],
  ])(
    'kubectl get with the arguments %j prints the same output as for core nodes, except the column AGE',
    async (args) => {
      const [printed, core] = await Promise.all(
        [ours, 'nodes'].map(async (resource) => withoutAge(await succeed(client, 'get', resource, ...args))),
      );
      expect(printed).toEqual(core);
      expect(printed?.length).toBeGreaterThan(0);
    },
  );

  test('kubectl get prints "No resources found" if no node matches', async () => {
    const { code, stderr } = await client('get', ours, '-l', 'nobody=has');
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'No resources found\n' });
  });

  test('kubectl get --chunk-size reads a list in pages', async () => {
    const { stderr } = await client('get', ours, '--chunk-size=3', '-o', 'name', '-v=6');
    expect(stderr.match(/nodes\?(continue=[\w-]+&)?limit=3/g)).toHaveLength(3);
  });

  test.each([
    ['yaml', parse as (text: string) => unknown],
    ['json', JSON.parse],
  ])('kubectl get -o %s prints nodes with all their fields', async (format, read) => {
    const list = read(await succeed(client, 'get', ours, '-o', format)) as KubeList;
    expect(list.items).toEqual(await servedNodes());
    expect(read(await succeed(client, 'get', ours, 'node-1', '-o', format))).toEqual((await servedNodes())[0]);
  });

  test('kubectl get -o name accepts the singular, plural and short names of the resource', async () => {
    const names = (await nodes()).items.map(({ metadata: { name } }) => `node.resources.platform.io/${name}\n`);
    for (const resource of [ours, 'node.resources.platform.io', 'nodes.v1alpha3.resources.platform.io'])
      expect(await succeed(client, 'get', resource, '-o', 'name')).toBe(names.join(''));
    expect(await succeed(client, 'get', 'node.resources.platform.io/node-1', '-o', 'name')).toBe(names[0]);
  });

  test('kubectl get --raw reads the list and one object', async () => {
    const list = JSON.parse(await succeed(client, 'get', '--raw', `${apisPath}/nodes`)) as KubeList;
    expect(list).toMatchObject({ kind: 'NodeList', apiVersion });
    expect(list.items).toEqual(await servedNodes());
    expect(JSON.parse(await succeed(client, 'get', '--raw', `${apisPath}/nodes/node-1`))).toEqual(list.items[0]);
  });

  test('kubectl describe prints a node', async () => {
    const text = await succeed(client, 'describe', ours, 'node-3');
    expect(text).toMatch(/^Name: +node-3$/m);
    expect(text).toMatch(/^API Version: +resources\.platform\.io\/v1alpha3$/m);
    expect(text).toMatch(/^ +Unschedulable: +true$/m);
  });

  test('kubectl wait waits for a condition', async () => {
    expect(await succeed(client, 'wait', '--for=condition=Ready', `${ours}/node-1`)).toContain('condition met');
  });

  test.each([
    [['get', ours, 'nobody'], '(NotFound): nodes.resources.platform.io "nobody" not found'],
    [['describe', ours, 'nobody'], '(NotFound): nodes.resources.platform.io "nobody" not found'],
    [['get', '--raw', `${apisPath}/nodes/nobody`], '(NotFound): nodes.resources.platform.io "nobody" not found'],
    [['get', '--raw', `${apisPath}/nothing`], '(NotFound): the server could not find the requested resource'],
    [['get', ours, '-l', 'a=b=c'], "found '=', expected: ',' or 'end of string'"],
    [['get', ours, '--field-selector', 'spec.providerID=x'], 'field label not supported: spec.providerID'],
    [['get', '--raw', `${apisPath}/nodes?limit=x`], '(BadRequest): limit'],
    [['explain', 'nodes.spec.nothing', `--api-version=${apiVersion}`], 'field "nothing" does not exist'],
  ])('kubectl %j fails with %s', async (args, message) => {
    const { code, stderr } = await client(...args);
    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });

  test('kubectl api-resources and api-versions list the resource nodes and the version of the API', async () => {
    const [, nodesRow, ...more] = rows(await succeed(client, 'api-resources', '--api-group=resources.platform.io'));
    expect(nodesRow).toEqual(['nodes', '', apiVersion, 'false', 'Node']);
    expect(more).toEqual([]);
    const verbs = await succeed(client, 'api-resources', '--verbs=watch,list,get', '-o', 'name');
    expect(verbs.split('\n')).toContain(ours);
    expect((await succeed(client, 'api-versions')).split('\n')).toContain(apiVersion);
  });

  test('kubectl get accepts the category platform, and kubectl api-resources prints the short names', async () => {
    expect(await succeed(client, 'get', 'platform', '-o', 'name')).toContain('node.resources.platform.io/node-1\n');
    const shortNames = rows(await succeed(client, 'api-resources', '--api-group=iam.platform.io')).map((row) => row[1]);
    expect(shortNames).toEqual(['SHORTNAMES', 'lft', 'lh', 'sess', 'usr']);
  });

  test('kubectl get nodes still reads the core nodes', async () => {
    expect(await succeed(client, 'get', 'nodes', 'node-1', '-o', 'name')).toBe('node/node-1\n');
    expect(await succeed(client, 'get', 'no', 'node-1', '-o', 'name')).toBe('node/node-1\n');
  });

  test.each([
    [['nodes'], ['KIND: +Node', 'VERSION: .*v1alpha3', 'worker node in Kubernetes', 'spec\\s+<']],
    [['nodes.spec.taints'], ['taints <\\[\\]', "the node's taints", 'effect\\s+<string> -required-']],
    [
      ['nodes', '--recursive'],
      ['kubeletVersion\\s+<string>', 'unschedulable\\s+<boolean>'],
    ],
  ])('kubectl explain %j prints the fields', async (args, patterns) => {
    const text = await succeed(client, 'explain', ...args, `--api-version=${apiVersion}`);
    for (const pattern of patterns) expect(text).toMatch(new RegExp(pattern));
  });

  test.each([
    ['logs', 'KIND: +LogQuery'],
    ['logs.query.records', 'container\\s+<string>'],
    ['logs.histogram', 'operation=histogram'],
  ])('kubectl explain %s prints the description', async (what, pattern) => {
    const text = await succeed(client, 'explain', what, '--api-version=logging.platform.io/v1alpha2');
    expect(text).toMatch(new RegExp(pattern));
    expect(text).not.toContain('<empty>');
  });

  test('kubectl get apiservice reports the APIService as available', async () => {
    const [, row] = rows(await succeed(client, 'get', 'apiservice', 'v1alpha3.resources.platform.io'));
    expect(row?.slice(1, 3)).toEqual(['platform-system/platform-apiserver', 'True']);
  });

  describe('commands that are not supported', () => {
    beforeAll(() => {
      const node = { apiVersion, kind: 'Node', metadata: { name: 'node-1', labels: { written: 'yes' } } };
      writeFileSync(manifest(), JSON.stringify(node));
    });

    test.each([
      [['delete', ours, 'node-1']],
      [['delete', ours, '--all']],
      [['delete', '--raw', `${apisPath}/nodes`]],
      [['patch', ours, 'node-1', '-p', '{"spec":{"unschedulable":true}}', '--type=merge']],
      [['patch', ours, 'node-1', '-p', '[{"op":"remove","path":"/spec"}]', '--type=json']],
      [['label', ours, 'node-1', 'written=yes']],
      [['annotate', ours, 'node-1', 'written=yes']],
      [['create', '-f', 'MANIFEST']],
      [['replace', '-f', 'MANIFEST']],
      [['apply', '-f', 'MANIFEST']],
      [['apply', '-f', 'MANIFEST', '--server-side']],
    ])('kubectl %j fails with MethodNotAllowed', async (args) => {
      const { code, stderr } = await client(...args.map((arg) => (arg === 'MANIFEST' ? manifest() : arg)));
      expect(stderr).toContain('(MethodNotAllowed)');
      expect(stderr).toContain('the server does not allow this method on the requested resource');
      expect(code).toBe(1);
    });
  });

  test('kubectl get -w shows changes of nodes', async () => {
    const name = `watched-${randomUUID()}`;
    const watch = client.start('get', ours, '-w', '--output-watch-events');
    const printedEvent = (event: string, node: string): Promise<string> =>
      watch.line(`the watch prints ${event} ${node}`, (line) => line.startsWith(event) && line.includes(` ${node} `));
    try {
      await printedEvent('ADDED', 'node-7');
      await createNode(name);
      await printedEvent('ADDED', name);
      await patch(nodePath(name), { spec: { unschedulable: true } });
      expect(await printedEvent('MODIFIED', name)).toContain('Unknown');
      await watch.line(
        'the watch prints the cordoned node',
        (line) => line.includes(name) && line.includes('SchedulingDisabled'),
      );
      await remove(nodePath(name));
      await printedEvent('DELETED', name);
    } finally {
      await remove(nodePath(name));
      await watch.end();
    }
    expect(watch.lines()[0]?.split(/\s+/).slice(0, 3)).toEqual(['EVENT', 'NAME', 'STATUS']);
  });

  test('kubectl get -w -l shows an object that starts and stops matching', async () => {
    const name = `labelled-${randomUUID()}`;
    const label = (value: string | null): Promise<KubeObject> =>
      patch(nodePath(name), { metadata: { labels: { shown: value } } });
    await createNode(name);
    const watch = client.start('get', ours, '-w', '--output-watch-events', '-l', `shown=${name}`);
    try {
      // kubectl lists first and prints nothing for an empty list, so the list or the watch may show the labelled node.
      await label(name);
      await watch.line('the watch prints the new node', (line) => line.startsWith('ADDED') && line.includes(name));
      await label(null);
      await watch.line('the watch prints the deletion', (line) => line.startsWith('DELETED') && line.includes(name));
    } finally {
      await remove(nodePath(name));
      await watch.end();
    }
    expect(watch.lines().filter((line) => line.startsWith('ADDED'))).toHaveLength(1);
  });

  test('kubectl proxy forwards requests from curl', async () => {
    const name = `proxied-${randomUUID()}`;
    const proxy = client.start('proxy', '--port=0');
    try {
      const line = await proxy.line('the proxy is listening', (text) => text.includes('Starting to serve on'));
      const url = `http://${line.split(' ').at(-1)}${apisPath}/nodes`;
      const list = (await curl(url)).json as KubeList;
      expect(list.items).toEqual(await servedNodes());
      const watch = startProgram('curl', [
        '-sSN',
        `${url}?watch=true&resourceVersion=${list.metadata.resourceVersion}`,
      ]);
      try {
        const { metadata } = await createNode(name);
        const event = await watch.line('the watch prints the node', (text) => text.includes(name));
        expect(JSON.parse(event)).toMatchObject({
          type: 'ADDED',
          object: { kind: 'Node', apiVersion, metadata: { name, uid: metadata.uid } },
        });
      } finally {
        await watch.end();
      }
    } finally {
      await remove(nodePath(name));
      await proxy.end();
    }
  });

  describe('kubectl with impersonation', () => {
    const suffix = randomUUID();
    const names = {
      reader: `reader-${suffix}`,
      group: `readers-${suffix}`,
      half: `half-${suffix}`,
      other: `other-half-${suffix}`,
    };
    beforeAll(async () => {
      await createClusterRole(names.half, [readNodes('resources.platform.io')]);
      await createClusterRole(names.other, [readNodes('')]);
      await bind(names.half, names.half, { kind: 'User', name: names.half });
      await bind(names.other, names.other, { kind: 'User', name: names.other });
      await bind(
        names.reader,
        'platform-node-reader',
        { kind: 'User', name: names.reader },
        { kind: 'Group', name: names.group },
      );
    });
    afterAll(async () => {
      for (const name of [names.reader, names.half, names.other]) await unbind(name);
      for (const name of [names.half, names.other]) await removeClusterRole(name);
    });

    test('kubectl with impersonation can read nodes as a user or a group bound to platform-node-reader', async () => {
      for (const as of [
        ['--as', names.reader],
        ['--as', 'anyone', '--as-group', names.group],
      ])
        expect(withoutAge(await succeed(client, 'get', ours, ...as))).toEqual(
          withoutAge(await succeed(client, 'get', 'nodes')),
        );
      expect(await succeed(client, 'get', ours, 'node-1', '--as', names.reader, '-o', 'name')).toContain('node-1');
    });

    test.each([
      ['a user without rights', ['--as', `nobody-${suffix}`], `nobody-${suffix}`, 'resources.platform.io', ours],
      [
        'a group without rights',
        ['--as', `u-${suffix}`, '--as-group', `g-${suffix}`],
        `u-${suffix}`,
        'resources.platform.io',
        ours,
      ],
      ['a user with only the right to the aggregated nodes', ['--as', names.half], names.half, '', 'nodes'],
      ['a user with only the right to core nodes', ['--as', names.other], names.other, 'resources.platform.io', ours],
    ])(
      'kubectl as %s cannot read nodes, and the error names the missing right',
      async (_who, as, user, group, resource) => {
        for (const [verb, args] of [
          ['list', []],
          ['get', ['node-1']],
        ] as const) {
          const { code, stderr } = await client('get', ours, ...args, ...as);
          const subject = verb === 'get' ? `${resource} "node-1"` : resource;
          expect(stderr).toBe(
            `Error from server (Forbidden): ${subject} is forbidden: User "${user}" cannot ${verb} resource "nodes" in API group "${group}" at the cluster scope\n`,
          );
          expect(code).toBe(1);
        }
      },
    );

    test('kubectl auth can-i reports the rights of the impersonated user', async () => {
      for (const verb of ['get', 'list', 'watch']) {
        expect(await may(client, verb)).toBe('yes');
        expect(await may(client, verb, '--as', names.reader)).toBe('yes');
        expect(await may(client, verb, '--as', `nobody-${suffix}`)).toBe('no');
      }
      expect(await may(client, 'delete', '--as', names.reader)).toBe('no');
    });
  });
});
