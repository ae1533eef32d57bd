/**
 * Nodes at /kapis: every row of the parameter tables in docs/reference/api.md, and equality with the objects of
 * kube-apiserver.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath, secureGateway, type HttpResponse, type Call } from '../labs/integration/http.ts';
import {
  createNode,
  get,
  nodePath,
  nodes,
  patch,
  remove,
  type KubeList,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { adminToken } from '../labs/integration/login.ts';
import { expectStatus } from '../labs/integration/status.ts';

type NodeList = KubeList & { readonly totalItems: number };

const send = async (path: string, more: Call & { readonly base?: string } = {}): Promise<HttpResponse> => {
  const { base = gateway(), ...rest } = more;
  return await call(`${base}${nodesPath}${path}`, { token: await adminToken(), ...rest });
};

async function list(query: string): Promise<NodeList> {
  const response = await send(query);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  return response.json as NodeList;
}

const namesIn = ({ items }: Pick<KubeList, 'items'>): string[] => items.map(({ metadata }) => metadata.name);

/** Default order: newest first, ties by name. */
const newestFirst = (items: readonly KubeObject[]): string[] =>
  items
    .toSorted(({ metadata: a }, { metadata: b }) => {
      const times = Date.parse(b.creationTimestamp ?? '') - Date.parse(a.creationTimestamp ?? '');
      return times === 0 ? (a.name < b.name ? -1 : 1) : times;
    })
    .map(({ metadata }) => metadata.name);

const onBothReplicas = (what: string, check: (base: string) => Promise<void>): Promise<unknown> =>
  Promise.all([gateway(0), gateway(1)].map((base) => eventually(what, () => check(base))));

/** Nodes that only these tests change. */
const own: Readonly<Record<string, { metadata?: object; spec?: object }>> = {
  'row-a': {
    metadata: {
      labels: { suite: 'rows', env: 'prod', rack: '10' },
      annotations: { 'example.com/url': 'https://example.com/?a=b,c' },
      ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Machine', name: 'm', uid: 'machine-uid-1' }],
    },
  },
  'row-b': { metadata: { labels: { suite: 'rows', env: 'dev', rack: '9' } }, spec: { unschedulable: true } },
  'row-c': { metadata: { labels: { suite: 'rows', env: '' } }, spec: { podCIDR: '10.9.8.0/24' } },
  'row-d.example': { metadata: { labels: { suite: 'rows', rack: 'a' } } },
};

beforeAll(async () => {
  for (const [name, more] of Object.entries(own)) await createNode(name, more);
  await onBothReplicas('all nodes are there', async (base) => {
    const { totalItems } = (await send('?label=suite=rows', { base })).json as NodeList;
    if (totalItems !== Object.keys(own).length) throw new Error(`there are ${totalItems}`);
  });
});
afterAll(async () => {
  for (const name of Object.keys(own)) await remove(nodePath(name));
});

const query = (parameters: Readonly<Record<string, string>>): string =>
  `?${new URLSearchParams(parameters).toString()}`;
/** Query that selects the tests' own nodes. */
const rows = { label: 'suite=rows', sortBy: 'name', ascending: 'true' } as const;

describe('filters of the node list', () => {
  test.each<[Record<string, string>, string]>([
    [{}, 'row-a row-b row-c row-d.example'],
    [{ name: 'row-' }, 'row-a row-b row-c row-d.example'],
    [{ name: 'w-d' }, 'row-d.example'],
    [{ name: 'ROW' }, ''],
    [{ name: '' }, 'row-a row-b row-c row-d.example'],
    [{ names: 'row-a' }, 'row-a'],
    [{ names: 'row-c,row-a,row' }, 'row-a row-c'],
    [{ names: '' }, ''],
    [{ namespace: 'default' }, ''],
    [{ ownerReference: 'machine-uid-1' }, 'row-a'],
    [{ ownerReference: 'machine-uid' }, ''],
    [{ ownerKind: 'Machine' }, 'row-a'],
    [{ ownerKind: 'Node' }, ''],
    [{ label: 'suite=rows,env' }, 'row-a row-b row-c'],
    [{ annotation: 'example.com/url' }, 'row-a'],
    [{ annotation: '!example.com/url' }, 'row-b row-c row-d.example'],
    [{ status: 'unschedulable' }, 'row-b'],
    [{ labelSelector: '' }, 'row-a row-b row-c row-d.example'],
    [{ labelSelector: 'env=prod' }, 'row-a'],
    [{ labelSelector: 'env==prod' }, 'row-a'],
    [{ labelSelector: 'env!=prod' }, 'row-b row-c row-d.example'],
    [{ labelSelector: 'env=' }, 'row-c'],
    [{ labelSelector: 'env in (prod, dev)' }, 'row-a row-b'],
    [{ labelSelector: 'env notin (prod,dev)' }, 'row-c row-d.example'],
    [{ labelSelector: '!env' }, 'row-d.example'],
    [{ labelSelector: 'rack>9' }, 'row-a'],
    [{ labelSelector: 'rack<10,env=dev' }, 'row-b'],
    [{ fieldSelector: '' }, 'row-a row-b row-c row-d.example'],
    [{ fieldSelector: 'metadata.name=row-b' }, 'row-b'],
    [{ fieldSelector: 'metadata.name!=row-b' }, 'row-a row-c row-d.example'],
    [{ fieldSelector: 'spec.unschedulable=true' }, 'row-b'],
    [{ fieldSelector: 'spec.unschedulable=false' }, 'row-a row-c row-d.example'],
    [{ fieldSelector: 'spec.podCIDR=10.9.8.0/24' }, 'row-c'],
    [{ fieldSelector: '.metadata.labels.env==dev,spec.unschedulable=true' }, 'row-b'],
    [{ fieldSelector: 'metadata.annotations.example\\.com/url=https://example.com/?a\\=b\\,c' }, 'row-a'],
    [{ fieldSelector: 'metadata.ownerReferences.0.kind=Machine' }, 'row-a'],
    [{ fieldSelector: 'no.such.field=' }, 'row-a row-b row-c row-d.example'],
    [{ fieldSelector: 'no.such.field=x' }, ''],
    [{ name: 'row-', labelSelector: 'rack', fieldSelector: 'spec.unschedulable=false' }, 'row-a row-d.example'],
  ])('the node list is filtered by the parameters %j', async (parameters, expected) => {
    const found = await list(query({ ...rows, ...parameters }));
    expect(namesIn(found).join(' ')).toBe(expected);
    expect(found.totalItems).toBe(found.items.length);
  });

  test('the node list is filtered by uid', async () => {
    const { uid = '' } = (await get(nodePath('row-c'))).metadata;
    expect(namesIn(await list(query({ uid })))).toEqual(['row-c']);
    expect(namesIn(await list(query({ uid: uid.slice(1) })))).toEqual([]);
  });

  test('the node list and kube-apiserver return the same nodes for label and field selectors', async () => {
    for (const parameters of [
      { labelSelector: 'kubernetes.io/arch=amd64' },
      { labelSelector: 'kubernetes.io/hostname,!suite' },
      { labelSelector: 'suite notin (rows)' },
      { fieldSelector: 'spec.unschedulable=false' },
      { fieldSelector: 'metadata.name!=row-a,spec.unschedulable!=true' },
    ]) {
      const core = await get<KubeList>(`/api/v1/nodes${query(parameters)}`);
      expect(namesIn(await list(query(parameters))).toSorted()).toEqual(namesIn(core).toSorted());
    }
  });
});

describe('order and pages of the node list', () => {
  test.each<[Record<string, string>, string, number]>([
    [{ limit: '2' }, 'row-a row-b', 4],
    [{ limit: '2', page: '1' }, 'row-a row-b', 4],
    [{ limit: '2', page: '2' }, 'row-c row-d.example', 4],
    [{ limit: '3', page: '2' }, 'row-d.example', 4],
    [{ limit: '2', page: '3' }, '', 4],
    [{ limit: '100', page: '1' }, 'row-a row-b row-c row-d.example', 4],
    [{ limit: '0' }, '', 4],
    [{ limit: '0', page: '7' }, '', 4],
    [{ limit: '-1' }, 'row-a row-b row-c row-d.example', 4],
    [{ limit: '-1', page: '2' }, '', 4],
    [{ page: '999999999999999', limit: '999999999999999' }, '', 4],
    [{ limit: '1', page: '2', labelSelector: 'env' }, 'row-b', 3],
    [{ ascending: 'false' }, 'row-d.example row-c row-b row-a', 4],
    [{ ascending: '0', limit: '1' }, 'row-d.example', 4],
    [{ ascending: '1', limit: '1' }, 'row-a', 4],
    [{ sortBy: '.metadata.name' }, 'row-a row-b row-c row-d.example', 4],
    // Numbers are compared as numbers and precede text; missing values come last in both directions.
    [{ sortBy: '.metadata.labels.rack' }, 'row-b row-a row-d.example row-c', 4],
    [{ sortBy: '.metadata.labels.rack', ascending: 'false' }, 'row-d.example row-a row-b row-c', 4],
    [{ sortBy: '.spec.unschedulable' }, 'row-b row-a row-c row-d.example', 4],
    [{ sortBy: '.no.such.field' }, 'row-a row-b row-c row-d.example', 4],
  ])('the node list applies the parameters %j', async (parameters, expected, total) => {
    const found = await list(query({ ...rows, ...parameters }));
    expect(namesIn(found).join(' ')).toBe(expected);
    expect(found.totalItems).toBe(total);
  });

  test.each(['', 'sortBy=createTime', 'sortBy=creationTimestamp', 'sortBy=createTime&ascending=false'])(
    'the node list is sorted from newest to oldest by default, and by name for equal times: %j',
    async (text) => {
      const { items } = await nodes();
      expect(namesIn(await list(`?${text}`))).toEqual(newestFirst(items));
    },
  );

  test.each(['ascending=true', 'sortBy=.metadata.creationTimestamp&ascending=true'])(
    'the node list is sorted from oldest to newest with ?%s',
    async (text) => {
      const found = (await list(`?${text}`)).items.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
      expect(found).toEqual(found.toSorted((a, b) => a - b));
    },
  );

  test.each([1, 2, 3, 5, 100])(
    'the pages of the node list with limit=%d together contain each node exactly once',
    async (size) => {
      const found: string[] = [];
      for (let page = 1; ; page += 1) {
        const { items } = await list(`?limit=${size}&page=${page}`);
        if (items.length === 0) break;
        found.push(...namesIn({ items }));
      }
      expect(found).toEqual(newestFirst((await nodes()).items));
    },
  );
});

describe('a request for nodes with an invalid parameter', () => {
  test.each([
    'page=0',
    'page=-1',
    'page=1.5',
    'page=one',
    'page=',
    'page=1e3',
    'page=%2B1',
    'page=0x1',
    'page=%201',
    'page=99999999999999999999',
    'limit=-2',
    'limit=1.0',
    'limit=ten',
    'limit=',
    'limit=99999999999999999999',
    'sortBy=age',
    'sortBy=',
    'sortBy=.',
    'sortBy=.a..b',
    'sortBy=.a.',
    'ascending=yes',
    'ascending=',
    'ascending=TRUE',
    'status=Ready',
    'status=',
    'labelSelector=a%20b',
    'labelSelector=,',
    'labelSelector=a=b=c',
    'labelSelector=a%20in%20b',
    'labelSelector=a%20in%20(b',
    'labelSelector=a>b',
    'labelSelector=-a',
    'labelSelector=a/b/c',
    `labelSelector=a=${'b'.repeat(64)}`,
    'labelSelector=%00',
    'label=,',
    'annotation=-a',
    'fieldSelector=a',
    'fieldSelector=a..b=c',
    'fieldSelector==c',
    'fieldSelector=metadata.name=a=b',
    'fieldSelector=metadata.name=a%5Cb',
    'managedFields=maybe',
    'fields=',
    'fields=spec,,status',
    `fields=${Array(65).fill('spec').join(',')}`,
    'pretty=maybe',
    'timeout=soon',
    'timeout=-1s',
    'continue=abc',
    'nonsense=1',
    'Limit=1',
    '__proto__=1',
    'constructor=1',
    'limit=1&limit=1',
    'limit=1&limit=2',
    'name=a&name=b',
    'labelSelector=a&labelSelector=b',
    'sortBy=name&sortBy=name',
  ])(
    'a request for nodes with an invalid parameter gets 400 and an error that names the parameter: ?%s',
    async (text) => {
      const name = text.slice(0, text.indexOf('='));
      expect(expectStatus(await send(`?${text}`), 400, 'BadRequest').message).toContain(name);
    },
  );

  test('a request for nodes with an unknown parameter gets 400 with the closest match or the most common parameters', async () => {
    const typo = expectStatus(await send('?lable=a'), 400, 'BadRequest');
    expect(typo.message).toBe('lable: unknown parameter; did you mean label?');
    const other = expectStatus(await send('?phase=a'), 400, 'BadRequest');
    expect(other.message).toContain('phase: unknown parameter; known parameters include page, limit');
  });

  test.each(['page=1', 'limit=1', 'sortBy=name', 'ascending=true'])(
    'a watch of nodes with an unsupported parameter gets 400 and an error that names the parameter: %s',
    async (text) => {
      const { message } = expectStatus(await send(`?watch=true&${text}`), 400, 'BadRequest');
      expect(message).toContain(text.slice(0, text.indexOf('=')));
    },
  );

  test.each(['limit=1', 'labelSelector=a', 'nonsense=1', 'pretty=maybe'])(
    'a request for a single node with an invalid parameter gets 400 and an error that names the parameter: %s',
    async (text) => {
      const { message } = expectStatus(await send(`/row-a?${text}`), 400, 'BadRequest');
      expect(message).toContain(text.slice(0, text.indexOf('=')));
    },
  );
});

/** Converts an object of the core API to the object that /kapis serves according to docs/reference/api.md. */
function asServed(node: KubeObject, managedFields = false): object {
  const { managedFields: fields, ...metadata } = node.metadata;
  return {
    ...node,
    kind: 'Node',
    apiVersion: 'v1',
    metadata: {
      ...metadata,
      ...(managedFields ? { managedFields: fields } : {}),
      selfLink: `/api/v1/nodes/${metadata.name}`,
    },
  };
}

describe('a node equals the object of the core API', () => {
  test('a node in the list equals the object of the core API', async () => {
    // kwok and kube-controller-manager write to some nodes meanwhile.
    await eventually('both have the same nodes', async () => {
      const core = await nodes();
      const { kind, apiVersion, items, totalItems } = await list('');
      expect({ kind, apiVersion }).toEqual({ kind: 'NodeList', apiVersion: 'v1' });
      expect(totalItems).toBe(core.items.length);
      const byName = new Map(items.map((item) => [item.metadata.name, item]));
      for (const node of core.items) expect(byName.get(node.metadata.name)).toEqual(asServed(node));
    });
  });

  test.each([true, false])(
    'a node read by name with managedFields=%s equals the object of the core API, on each replica and listener',
    async (managedFields) => {
      for (const base of [gateway(0), gateway(1), secureGateway(0), secureGateway(1)])
        await eventually('both have the same node', async () => {
          const core = await get(nodePath('row-a'));
          const ours = (await send(`/row-a?managedFields=${managedFields}`, { base })).json;
          expect(ours).toEqual(asServed(core, managedFields));
        });
    },
  );

  test('nodes in the list have managedFields if requested', async () => {
    const { items } = await list('?names=row-b&managedFields=true');
    expect(items).toEqual([asServed(await get(nodePath('row-b')), true)]);
  });

  test('a node contains only the requested fields, both when read by name and in the list', async () => {
    const core = await get<KubeObject & { spec: object }>(nodePath('row-a'));
    const expected = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'row-a', uid: core.metadata.uid },
      spec: core.spec,
    };
    expect((await send('/row-a?fields=metadata.uid,.spec')).json).toEqual(expected);
    expect((await list('?names=row-a&fields=metadata.uid,.spec')).items).toEqual([expected]);
  });

  test.each([0, 1] as const)(
    'server-sent events of a node contain the object of the core API, on both listeners of replica %i',
    async (replica) => {
      const watch = '?watch=true&names=row-a&fields=metadata.name&timeoutSeconds=1';
      for (const base of [gateway(replica), secureGateway(replica)]) {
        const { status, headers, text } = await send(watch, { base, headers: { accept: 'text/event-stream' } });
        expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'text/event-stream' });
        const object = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'row-a' } };
        const [, data = '', id] = /^data: (.*)\n\nid: (\d+)\n\n$/.exec(text) ?? [];
        expect(JSON.parse(data)).toEqual({ type: 'ADDED', object });
        expect(Number(id)).toBeGreaterThan(0);
      }
      expectStatus(await send('', { headers: { accept: 'text/event-stream' } }), 406, 'NotAcceptable');
    },
  );

  test('a node is returned as indented JSON if requested', async () => {
    const [plain, pretty] = [await send('/row-c'), await send('/row-c?pretty=true')];
    expect(pretty.json).toEqual(plain.json);
    expect(plain.text).not.toContain('\n  ');
    expect(pretty.text).toBe(JSON.stringify(plain.json, undefined, 2));
  });

  test('a list of nodes has a resourceVersion that is not older than its items', async () => {
    const { metadata, items } = await list('');
    const newest = Math.max(...items.map((item) => Number(item.metadata.resourceVersion)));
    expect(Number(metadata.resourceVersion)).toBeGreaterThanOrEqual(newest);
    expect(Object.keys(metadata)).toEqual(['resourceVersion']);
  });
});

describe('a request for nodes', () => {
  test.each(['nothing', 'row', 'row-a.', 'ROW-A', '%F0%9F%90%9D'])(
    'a request for the nonexistent node %s gets 404',
    async (name) => {
      const decoded = decodeURIComponent(name);
      const status = expectStatus(await send(`/${name}`), 404, 'NotFound');
      expect(status.message).toBe(`nodes "${decoded}" not found`);
      expect(status.details).toEqual({ name: decoded, kind: 'nodes' });
    },
  );

  test.each(['/row-a/status', '/row-a/proxy/x', '/row-a/nothing'])(
    'a request for the unsupported subresource %s of a node gets 404',
    async (path) => {
      expectStatus(await send(path), 404, 'NotFound');
    },
  );

  test('a request for an unknown resource, group or version gets 404', async () => {
    for (const path of [
      '/kapis/resources.platform.io/v1alpha3/nothing',
      '/kapis/resources.platform.io/v1alpha3/Nodes',
      '/kapis/resources.platform.io/v1/nodes',
      '/kapis/nothing.platform.io/v1alpha3/nodes',
      '/kapis/resources.platform.io/v1alpha3/namespaces/default/nodes',
    ])
      expectStatus(await call(`${gateway()}${path}`, { token: await adminToken() }), 404, 'NotFound');
  });

  test('a GET request for nodes succeeds with a Content-Type header of any media type, which some clients send', async () => {
    for (const type of ['application/json', 'text/plain', 'nonsense'])
      expect((await send('/row-a', { headers: { 'content-type': type } })).status).toBe(200);
  });

  test.each(['application/json', '*/*', 'application/*;q=0.1, text/html', ''])(
    'a request for nodes with the Accept header %j gets JSON',
    async (accept) => {
      const { status, headers } = await send('/row-a', { headers: { accept } });
      expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'application/json' });
    },
  );

  test.each(['text/html', 'application/vnd.kubernetes.protobuf', 'application/json;q=0'])(
    'a request for nodes with the Accept header %s gets 406',
    async (accept) => {
      expectStatus(await send('/row-a', { headers: { accept } }), 406, 'NotAcceptable');
    },
  );

  test('a HEAD request for nodes returns the headers of GET and no body', async () => {
    for (const path of ['/row-a', '?labelSelector=suite=rows']) {
      const [actual, head] = [await send(path), await send(path, { method: 'HEAD' })];
      expect({ status: head.status, body: head.text }).toEqual({ status: 200, body: '' });
      expect(head.headers['content-length']).toBe(actual.headers['content-length']);
      expect(head.headers['content-type']).toBe('application/json');
    }
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'a request for nodes with the method %s gets 405 with the allowed methods',
    async (method) => {
      for (const path of ['', '/row-a']) {
        const response = await send(path, { method, body: '{}', headers: { 'content-type': 'application/json' } });
        expectStatus(response, 405, 'MethodNotAllowed');
        expect(response.headers.allow).toBe('GET, HEAD');
      }
    },
  );
});

describe('a change through kube-apiserver', () => {
  const changing = 'changing-node';
  afterAll(() => remove(nodePath(changing)));

  test('the creation, update and deletion of a node through kube-apiserver reach both replicas', async () => {
    await createNode(changing);
    await onBothReplicas('the node is there', async (base) => {
      expect((await send(`/${changing}`, { base })).status).toBe(200);
    });
    const { metadata } = await patch(nodePath(changing), { metadata: { labels: { colour: 'blue' } } });
    await onBothReplicas('the label is there', async (base) => {
      const found = (await send('?labelSelector=colour%3Dblue', { base })).json as NodeList;
      expect(found.items.map((item) => item.metadata.resourceVersion)).toEqual([metadata.resourceVersion]);
    });
    await patch(nodePath(changing), { metadata: { labels: { colour: null } }, spec: { unschedulable: true } });
    await onBothReplicas('it left the one filter and came into the other', async (base) => {
      expect(((await send('?label=colour', { base })).json as NodeList).totalItems).toBe(0);
      const found = (await send(`?status=unschedulable&names=${changing}`, { base })).json as NodeList;
      expect(found.totalItems).toBe(1);
    });
    await remove(nodePath(changing));
    await onBothReplicas('the node is gone', async (base) => {
      expectStatus(await send(`/${changing}`, { base }), 404, 'NotFound');
    });
  });
});
