/**
 * Requests through kube-apiserver's aggregator. They get the same responses as direct requests. Also tests outages of
 * kube-apiserver and of this server.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { setEndpoints } from '../../hack/run/registration.ts';
import { apiserverComplaints, stopApiserver, timeOf, wasStarting } from '../labs/integration/control-plane.ts';
import { readLog } from '../labs/integration/log.ts';
import { eventually } from '../labs/integration/eventually.ts';
import {
  aggregated,
  apisPath,
  call,
  gateway,
  nodesPath,
  open,
  read,
  type HttpResponse,
} from '../labs/integration/http.ts';
import { startInformers, type Informers } from '../labs/integration/informers.ts';
import { create, createNode, get, kube, nodePath, patch, remove, type KubeList } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken, passwordForm, postForm } from '../labs/integration/login.ts';
import { apiVersion, servedNodes } from '../labs/integration/served.ts';
import { replicaLogs, startReplica, stopReplica, werePresent } from '../labs/integration/servers.ts';
import { expectStatus } from '../labs/integration/status.ts';

const collection = `${apisPath}/nodes`;
const group = 'resources.platform.io';

/** Sends a request through kube-apiserver as its administrator. */
async function through(path: string, accept = 'application/json'): Promise<HttpResponse> {
  const { body } = await kube().stream(path, { headers: { accept } });
  return read(body as Parameters<typeof read>[0]);
}

/** Sends a request to the server's own port with a token. */
const direct = async (path: string, accept = 'application/json', replica: 0 | 1 = 0): Promise<HttpResponse> =>
  call(`${aggregated(replica)}${path}`, { token: await adminToken(), headers: { accept } });

const parameters = (kind: string): string => `application/json;as=${kind};v=v1;g=meta.k8s.io`;

describe('responses through the aggregator and directly from the server', () => {
  /** A resourceVersion that both replicas have seen. Replicas do not know changes from before their start. */
  let version = '';
  beforeAll(async () => {
    const annotations = { 'example.com/changed': randomUUID() };
    version = (await patch(nodePath('node-7'), { metadata: { annotations } })).metadata.resourceVersion ?? '';
  });

  test.each([
    ['a node', `${collection}/node-3`, 'application/json'],
    ['metadata of a node', `${collection}/node-3`, parameters('PartialObjectMetadata')],
    ['an indented node', `${collection}/node-3?pretty=true`, 'application/json'],
    ['an object that does not exist', `${collection}/nobody`, 'application/json'],
    ['an unknown path', `${apisPath}/nothing`, 'application/json'],
    ['an invalid selector', `${collection}?fieldSelector=nothing`, 'application/json'],
    ['an Accept header with an unsupported media type', collection, 'application/x-nothing'],
    ['the API group', `/apis/${group}`, 'application/json'],
    ['the list of API resources', apisPath, 'application/json'],
  ])(
    'responses through the aggregator and directly from the server have the same status, type and bytes for %s',
    async (_, path, accept) => {
      const [one, other] = await Promise.all([through(path, accept), direct(path, accept)]);
      expect(one.text).toBe(other.text);
      expect(one.status).toBe(other.status);
      expect(one.headers['content-type']).toBe(other.headers['content-type']);
    },
  );

  test.each(['application/json', parameters('PartialObjectMetadataList')])(
    'a list at one resourceVersion is equal through the aggregator and directly from the server, as %s',
    async (accept) => {
      const exact = `${collection}?resourceVersion=${version}&resourceVersionMatch=Exact`;
      const one = await through(exact, accept);
      expect((await direct(exact, accept)).text).toBe(one.text);
      expect((await direct(exact, accept, 1)).text).toBe(one.text);
      expect((one.json as KubeList).items).toHaveLength((await servedNodes()).length);
    },
  );

  test('a Table for the Accept header of client-go is equal through the aggregator and directly from the server, except for AGE', async () => {
    const accept = `${parameters('Table')},application/json`;
    const [one, other] = await Promise.all(
      [through, direct].map(async (way) => {
        const { kind, columnDefinitions, rows } = (await way(collection, accept)).json as {
          kind: string;
          columnDefinitions: { name: string }[];
          rows: { cells: string[]; object: object }[];
        };
        const age = columnDefinitions.findIndex(({ name }) => name === 'Age');
        return { kind, columnDefinitions, rows: rows.map((row) => ({ ...row, cells: row.cells.toSpliced(age, 1) })) };
      }),
    );
    expect(one).toEqual(other);
    expect(one).toMatchObject({ kind: 'Table', rows: (await servedNodes()).map(() => ({ cells: expect.anything() })) });
  });

  test('a list request with the resourceVersion of another resource succeeds through the aggregator and directly at the server', async () => {
    const name = `newer-${randomUUID()}`;
    const path = '/api/v1/namespaces/default/configmaps';
    const { resourceVersion = '' } = (await create(path, { metadata: { name } })).metadata;
    await remove(`${path}/${name}`);
    for (const replica of [0, 1] as const) {
      const response = await direct(`${collection}?resourceVersion=${resourceVersion}`, undefined, replica);
      expect(response.status).toBe(200);
      const list = response.json as KubeList;
      expect(Number(list.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(resourceVersion));
    }
  });

  test('pages of one list can come from different replicas through the aggregator', async () => {
    const first = (await direct(`${collection}?limit=3`)).json as KubeList;
    const rest = (await direct(`${collection}?limit=100&continue=${first.metadata.continue}`, undefined, 1))
      .json as KubeList;
    expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    expect([...first.items, ...rest.items]).toEqual(await servedNodes());
  });
});

const aggregatedForm = (version: string): string =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
const nodesOf = (version: string): object => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: `apidiscovery.k8s.io/${version}`,
  items: expect.arrayContaining([
    expect.objectContaining({
      metadata: expect.objectContaining({ name: group }) as unknown,
      versions: [
        {
          version: 'v1alpha3',
          freshness: 'Current',
          resources: [
            {
              categories: ['platform'],
              resource: 'nodes',
              responseKind: { group, version: 'v1alpha3', kind: 'Node' },
              scope: 'Cluster',
              singularResource: 'node',
              verbs: ['get', 'list', 'watch'],
            },
          ],
        },
      ],
    }),
  ]) as unknown,
});

describe('discovery', () => {
  test('discovery of kube-apiserver lists the group resources.platform.io with the freshness "Current"', async () => {
    await eventually('kube-apiserver has fetched the discovery document', async () => {
      if ((await freshness()) !== 'Current') throw new Error('not fetched recently');
    });
    const response = await through('/apis', aggregatedForm('v2'));
    expect(response.json).toMatchObject(nodesOf('v2'));
    const legacy = (await through('/apis')).json as { groups: { name: string }[] };
    expect(legacy.groups.map(({ name }) => name)).toContain(group);
  });

  test.each(['v2', 'v2beta1'])('discovery of the server is returned in the format %s with an ETag', async (version) => {
    const response = await direct('/apis', aggregatedForm(version));
    expect(response.json).toMatchObject(nodesOf(version));
    expect(response.headers).toMatchObject({ 'content-type': aggregatedForm(version), vary: 'Accept' });
    const again = await call(`${aggregated()}/apis`, {
      token: await adminToken(),
      headers: { accept: aggregatedForm(version), 'if-none-match': response.headers.etag ?? '' },
    });
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: '' });
  });

  test('discovery of the server supports the Accept header that kube-apiserver has sent since 1.26', async () => {
    for (const accept of [
      `${aggregatedForm('v2')},${aggregatedForm('v2beta1')}`,
      `${aggregatedForm('v9')},application/json`,
    ])
      expect((await direct('/apis', accept)).status).toBe(200);
    expectStatus(await direct('/apis', aggregatedForm('v9')), 406, 'NotAcceptable');
  });
});

describe('the OpenAPI descriptions of kube-apiserver', () => {
  beforeAll(async () => {
    // After a failed attempt, kube-apiserver would read the descriptions only a minute later.
    await remindApiserver();
    for (const [document, ours] of [
      ['/openapi/v2', `${collection}/{name}`],
      ['/openapi/v3', apisPath.slice(1)],
    ] as const)
      await eventually(`kube-apiserver has merged the descriptions of the server into ${document}`, async () => {
        const { paths } = (await through(document)).json as { paths: object };
        if (!Object.hasOwn(paths, ours)) throw new Error(`${ours} is not listed yet`);
      });
  });

  test('the OpenAPI descriptions of kube-apiserver contain the paths and kinds of this server in Swagger 2.0', async () => {
    const { paths, definitions } = (await through('/openapi/v2')).json as Record<string, Record<string, unknown>>;
    expect(paths).toHaveProperty([`${collection}/{name}`]);
    expect(definitions).toHaveProperty(['io.platform.resources.v1alpha3.Node']);
    expect(definitions).toHaveProperty(['io.k8s.api.core.v1.Node']);
  });

  test('the OpenAPI descriptions of kube-apiserver contain the OpenAPI 3 document of this server, even at a URL with an outdated hash', async () => {
    const { paths } = (await through('/openapi/v3')).json as { paths: Record<string, { serverRelativeURL: string }> };
    const { serverRelativeURL = '' } = paths[apisPath.slice(1)] ?? {};
    const document = await through(serverRelativeURL);
    expect(document.json).toMatchObject({
      paths: {
        [collection]: { get: { 'x-kubernetes-group-version-kind': { group, version: 'v1alpha3', kind: 'Node' } } },
      },
    });
    // An aggregated server cannot redirect to the URL with the correct hash through kube-apiserver.
    const other = await through(serverRelativeURL.replace(/=.*/, '=OLD'));
    expect(other.status).toBe(200);
    expect(other.headers['cache-control']).not.toContain('immutable');
  });
});

/** Makes kube-apiserver check the APIService immediately instead of within a minute. */
const remindApiserver = (): Promise<unknown> =>
  patch(`/apis/apiregistration.k8s.io/v1/apiservices/v1alpha3.${group}`, {
    metadata: { annotations: { 'example.com/reminded': randomUUID() } },
  });

/** Returns the freshness of the API group at kube-apiserver: Current, or Stale if the group is unavailable. */
async function freshness(): Promise<string | undefined> {
  const { items } = (await through('/apis', aggregatedForm('v2'))).json as {
    items: { metadata: { name: string }; versions: { freshness: string }[] }[];
  };
  return items.find(({ metadata }) => metadata.name === group)?.versions[0]?.freshness;
}

const platformErrors = (): string[] => apiserverComplaints().filter((entry) => entry.includes('platform'));

/**
 * Errors that kube-apiserver may log before the first start of a replica, after a test has stopped a replica, and while
 * kube-apiserver starts and has not read the Service.
 */
const allowedWhileAbsent: readonly RegExp[] = [
  /service "platform-apiserver" not found|service unavailable|no endpoints available|connection refused|503|could not get list of group versions/,
  /context deadline exceeded|connection reset|EOF|http2: server sent GOAWAY/,
  // doctor.test.ts replaces the certificate, the CA and the Service of an APIService.
  /x509: |service "other" not found|no service port 10251 found/,
];

/** Errors that kube-apiserver may log at any time. */
const allowed: readonly RegExp[] = [
  // kube-apiserver's status update of an APIService conflicts with another write.
  /apiservices\.apiregistration\.k8s\.io .*the object has been modified/,
  // kube-apiserver updates the status of an APIService that doctor.test.ts has just deleted.
  /remote_available_controller\.go.*apiservices\.apiregistration\.k8s\.io .*not found/,
  // A client disconnects during a watch, or right after the last byte of a response.
  /Timeout or abort while handling|Post-timeout activity/,
  // kube-apiserver rejects an invalid request instead of forwarding the request.
  /invalid timeout specified in the request URL/,
  // kube-apiserver rejects a malformed object, such as a User whose spec is a number.
  /failed to update managedFields|failed to create typed patch object/,
];

const isAllowed = (entry: string): boolean =>
  [...allowed, ...(werePresent(timeOf(entry)) && !wasStarting(entry) ? [] : allowedWhileAbsent)].some((pattern) =>
    pattern.test(entry),
  );

const unexpectedErrors = (): string[] => platformErrors().filter((entry) => !isAllowed(entry));

describe("kube-apiserver's log", () => {
  test("kube-apiserver's log has no error about this server after kube-apiserver repeats its availability and discovery checks", async () => {
    const before = new Set(platformErrors());
    const mark = new Date().toISOString();
    await remindApiserver();
    await eventually('kube-apiserver has checked availability and fetched discovery', () => {
      const paths = replicaLogs()
        .flatMap((file) => readLog(file))
        .filter(({ time, via }) => time > mark && via === 'request-header')
        .map((line) => String(line['path']).replace(/\?.*/, ''));
      for (const path of ['/apis', apisPath])
        if (!paths.includes(path)) throw new Error(`not ${path} yet, but ${paths.join(' ')}`);
    });
    expect(
      platformErrors().filter((entry) => !before.has(entry) && !allowed.some((pattern) => pattern.test(entry))),
    ).toEqual([]);
  });

  test("kube-apiserver's log reports this server as unavailable only while a replica is stopped", () => {
    expect(unexpectedErrors()).toEqual([]);
  });
});

const isServed = async (name: string): Promise<boolean> =>
  ((await through(collection)).json as KubeList).items.some(({ metadata }) => metadata.name === name);

const listByGateway = async (replica: 0 | 1 = 0): Promise<HttpResponse> =>
  call(`${gateway(replica)}${nodesPath}`, { token: await adminToken() });

/** Reads a stream up to some text and closes it. */
async function readUntil(stream: AsyncIterable<Buffer>, end: string): Promise<string> {
  let text = '';
  for await (const chunk of stream) {
    text += chunk.toString();
    if (text.includes(end)) return text;
  }
  throw new Error(`the stream ended: ${text.slice(-500)}`);
}

/** Sets the endpoints of the Service, so that kube-apiserver sends requests only to these replicas. */
const announce = (replicas: readonly (0 | 1)[]): Promise<void> =>
  setEndpoints(
    kube(),
    replicas.map((index) => ({ address: lab().address, port: lab().replicas[index].aggregated })),
  );

// kube-apiserver rejects everyone with 403 until it has loaded RBAC.
test('clients get no 403 while kube-apiserver restarts, and watches continue', async () => {
  const token = await adminToken();
  const namespaces = '/kapis/resources.platform.io/v1alpha3/namespaces';
  // A new name requires a new access review, so that no cached decision hides the outage.
  const readMissing = async (replica: 0 | 1): Promise<number> =>
    (await call(`${gateway(replica)}${namespaces}/missing-${randomUUID()}`, { token })).status;
  const watches = await Promise.all(
    ([0, 1] as const).map(async (replica) => {
      expect(await readMissing(replica)).toBe(404);
      return await open(`${gateway(replica)}${namespaces}?watch=true`, { token });
    }),
  );
  const statuses = new Set<number>();
  let isBack = false;
  const over = new AbortController();
  const poll = async (replica: 0 | 1): Promise<void> => {
    while (!over.signal.aborted) {
      const isLast = isBack;
      const status = await readMissing(replica);
      statuses.add(status);
      if (isLast && status === 404) return;
      await sleep(20);
    }
  };
  const startApiserver = await stopApiserver();
  try {
    await Promise.all([poll(0), poll(1), startApiserver().then(() => (isBack = true))]);
  } finally {
    over.abort();
  }
  const name = `after-${randomUUID()}`;
  await create('/api/v1/namespaces', { metadata: { name } });
  for (const watch of watches) expect(await readUntil(watch, name)).not.toContain('"type":"ERROR"');
  expect(statuses).toEqual(new Set([404, 503]));
});

describe('informers of client-go', () => {
  let informers: Informers;
  const created: string[] = [];
  beforeAll(() => {
    informers = startInformers();
  });
  afterAll(async () => {
    await informers.end();
    for (const name of created) await remove(nodePath(name));
  });

  const newNode = async (purpose: string): Promise<string> => {
    const name = `${purpose}-${randomUUID()}`;
    created.push(name);
    await createNode(name);
    return name;
  };

  /** Expects the full lifecycle of a node from both informers. */
  async function expectLife(purpose: string): Promise<void> {
    const name = await newNode(purpose);
    await informers.both('add', name);
    await patch(nodePath(name), { metadata: { labels: { purpose } } });
    await informers.both('update', name, ({ labels = [] }) => labels.includes(`purpose=${purpose}`));
    await remove(nodePath(name));
    await informers.both('delete', name);
    for (const events of informers.story(name)) {
      expect(events.filter((event) => event !== 'update')).toEqual(['add', 'delete']);
      expect(events.at(-1)).toBe('delete');
    }
  }

  test('informers of client-go start with all nodes', async () => {
    const names = (await servedNodes()).map((node) => (node as { metadata: { name: string } }).metadata.name);
    for (const { names: held = [] } of await informers.both('synced'))
      expect(held.toSorted()).toEqual(names.toSorted());
  });

  test('informers of client-go receive the creation, change and deletion of a node', async () => {
    await expectLife('lived');
  });

  test.each([
    [0, 1],
    [1, 0],
  ] as const)('informers of client-go continue when replica %d is restarted', async (replica, other) => {
    await stopReplica(replica);
    await announce([other]);
    await expectLife('meanwhile');
    await startReplica(replica);
    await announce([0, 1]);
    await expectLife('afterwards');
  });

  describe('while no replica is available', () => {
    const namespace = `doomed-${randomUUID()}`;
    let gone = '';
    let come = '';
    beforeAll(async () => {
      gone = await newNode('gone');
      await informers.both('add', gone);
      await create('/api/v1/namespaces', { metadata: { name: namespace } });
      await Promise.all([stopReplica(0), stopReplica(1)]);
      // Later tests need the replicas, even if this fails.
      try {
        await remindApiserver();
        await eventually('kube-apiserver reports the API group as stale', async () => {
          if ((await freshness()) !== 'Stale') throw new Error('not stale yet');
        });
        await remove(`/api/v1/namespaces/${namespace}`);
        await remove(nodePath(gone));
        come = await newNode('come');
        await eventually('the deletion of the namespace waits for the server', async () => {
          const { conditions = [] } = (await get(`/api/v1/namespaces/${namespace}`)).status as {
            conditions?: { type: string; status: string }[];
          };
          if (!conditions.some(({ type, status }) => type === 'NamespaceDeletionDiscoveryFailure' && status === 'True'))
            throw new Error(JSON.stringify(conditions));
        });
      } finally {
        await Promise.all([startReplica(0), startReplica(1)]);
      }
    });

    test('a pending namespace deletion completes within 90 s after a replica restarts', async () => {
      await eventually(
        'the namespace is deleted',
        async () => {
          const { items } = await get<KubeList>('/api/v1/namespaces');
          expect(items.map(({ metadata }) => metadata.name)).not.toContain(namespace);
        },
        90_000,
      );
      expect(await through(`/api/v1/namespaces/${namespace}`)).toMatchObject({ status: 404 });
    });

    test('informers report nodes that were created or deleted while no replica was available', async () => {
      await eventually('kube-apiserver reaches the server again', async () => {
        expect({ come: await isServed(come), gone: await isServed(gone) }).toEqual({ come: true, gone: false });
      });
      await informers.both('add', come);
      await informers.both('delete', gone);
    });
  });

  describe('while kube-apiserver is unavailable', () => {
    let startApiserver: () => Promise<void>;
    let before: KubeList;
    beforeAll(async () => {
      before = (await listByGateway()).json as KubeList;
      startApiserver = await stopApiserver();
    });

    test('a recently authorized user still reads from the cache while kube-apiserver is unavailable', async () => {
      expect((await listByGateway()).json).toEqual(before);
    });

    test('liveness and readiness are unaffected while kube-apiserver is unavailable', async () => {
      for (const probe of ['livez', 'readyz']) expect((await call(`${gateway()}/${probe}`)).status).toBe(200);
    });

    test('a login gets 503 temporarily_unavailable while kube-apiserver is unavailable', async () => {
      const response = await postForm(passwordForm('alice'));
      expect(response.status).toBe(503);
      expect(response.json).toMatchObject({ error: 'temporarily_unavailable' });
    });

    test('requests get 503 once cached authorization decisions expire, while the server stays ready', async () => {
      const response = await eventually('reads are rejected', async () => {
        const refused = await listByGateway();
        if (refused.status === 200) throw new Error('the cache is still read');
        return refused;
      });
      expectStatus(response, 503, 'ServiceUnavailable');
      for (const probe of ['livez', 'readyz']) expect((await call(`${gateway()}/${probe}`)).status).toBe(200);
    });

    test('requests, logins and watches succeed again when kube-apiserver is available again', async () => {
      await startApiserver();
      for (const replica of [0, 1] as const)
        await eventually('reads succeed', async () => expect((await listByGateway(replica)).status).toBe(200));
      await eventually('kube-apiserver reaches the server', async () =>
        expect((await through(collection)).status).toBe(200),
      );
      expect((await postForm(passwordForm('alice'))).status).toBe(200);
      await expectLife('revived');
    });
  });

  test('informers of client-go have every node, with the apiVersion of this server, after all restarts', async () => {
    const { items } = (await through(collection)).json as KubeList;
    expect(items).toEqual(await servedNodes());
    expect(items.every((item) => item.apiVersion === apiVersion)).toBe(true);
  });

  test("kube-apiserver's log reports this server as unavailable only while a replica is stopped, even if kube-apiserver has restarted", () => {
    expect(unexpectedErrors()).toEqual([]);
  });
});
