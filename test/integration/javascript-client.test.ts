/** The unmodified Kubernetes client for JavaScript: the same results through the gateway as at kube-apiserver. */
import { beforeAll, expect, test } from '@jest/globals';
import {
  ApiException,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type KubernetesObject,
  type V1ConfigMap,
} from '@kubernetes/client-node';
import { eventually } from '../labs/integration/eventually.ts';
import { kubeconfigOf } from '../labs/integration/cases.ts';
import { secureGateway } from '../labs/integration/http.ts';
import { lab } from '../labs/integration/lab.ts';

const namespace = 'default';

/** Address of a server; objects created there are named after it. */
interface Way {
  readonly config: KubeConfig;
  readonly name: string;
}

const ways: Way[] = [];
const core = ({ config }: Way): CoreV1Api => config.makeApiClient(CoreV1Api);
const settings = ({ name }: Way, a = '1', labels: Record<string, string> = {}): V1ConfigMap => ({
  metadata: { name, labels },
  data: { a },
});
const of = ({ name }: Way): { name: string; namespace: string } => ({ name, namespace });

beforeAll(async () => {
  for (const [name, file] of [
    ['script-itself', lab().kubeconfig],
    ['script-through', await kubeconfigOf('script', secureGateway())],
  ] as const) {
    const config = new KubeConfig();
    config.loadFromFile(file);
    ways.push({ config, name });
  }
});

async function refusal(result: Promise<unknown>): Promise<unknown> {
  const error = await result.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof ApiException)) throw new Error('the request succeeded', { cause: error });
  return { code: error.code, body: error.body as unknown };
}

/** Replaces parts that differ between the servers: the name of the server, resourceVersions, uids and times. */
const comparable = (seen: unknown, { name }: Way): unknown =>
  JSON.parse(
    JSON.stringify(seen)
      .replaceAll(name, 'own')
      .replaceAll(/"(resourceVersion|uid|creationTimestamp|time)":"[^"]*"/g, '"$1":"…"'),
  );

/** Returns the events of a watch while an object is created, changed and deleted. */
async function watched(way: Way): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  let started = false;
  const query = { fieldSelector: `metadata.name=${way.name}`, timeoutSeconds: 30 };
  const ended = new Promise<void>((resolve, reject) => {
    const watch = new Watch(way.config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      query,
      (type, { metadata, data }: V1ConfigMap) => {
        events.push([type, metadata?.name, data]);
        started = true;
        if (type === 'DELETED') void watch.then((request) => request.abort());
      },
      () => resolve(),
    );
    watch.catch(reject);
  });
  await core(way).createNamespacedConfigMap({ namespace, body: settings(way) });
  await eventually('the watch has started', () => expect(started).toBe(true));
  await core(way).replaceNamespacedConfigMap({ ...of(way), body: settings(way, '2') });
  await core(way).deleteNamespacedConfigMap(of(way));
  await ended;
  return events;
}

async function informed(way: Way): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  const selector = `made-by=${way.name}`;
  const informer = makeInformer<V1ConfigMap>(
    way.config,
    `/api/v1/namespaces/${namespace}/configmaps`,
    () => core(way).listNamespacedConfigMap({ namespace, labelSelector: selector }),
    selector,
  );
  for (const verb of ['add', 'update', 'delete'] as const)
    informer.on(verb, ({ data }) => void events.push([verb, data]));
  informer.on('error', (error: unknown) => void events.push(['error', String(error)]));
  await informer.start();
  const labels = { 'made-by': way.name };
  const seen = (count: number): Promise<void> =>
    eventually(`${count} events`, () => expect(events).toHaveLength(count));
  await core(way).createNamespacedConfigMap({ namespace, body: settings(way, '1', labels) });
  await seen(1);
  await core(way).replaceNamespacedConfigMap({ ...of(way), body: settings(way, '2', labels) });
  await seen(2);
  await core(way).deleteNamespacedConfigMap(of(way));
  await seen(3);
  await informer.stop();
  return events;
}

/** Applies objects, whose resources the client looks up by discovery. */
async function applied(way: Way): Promise<unknown> {
  const api = KubernetesObjectApi.makeApiClient(way.config);
  const object: KubernetesObject & Pick<V1ConfigMap, 'data'> = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: way.name, namespace },
    data: { a: '1' },
  };
  const results = [
    await api.patch(object, undefined, undefined, 'script', true, PatchStrategy.ServerSideApply),
    await api.patch(
      { ...object, data: { b: '2' } },
      undefined,
      undefined,
      'script',
      undefined,
      PatchStrategy.MergePatch,
    ),
    await api.read({ ...object, metadata: of(way) }),
    await api.delete(object),
  ];
  return results;
}

test.each<[string, (way: Way) => Promise<unknown>]>([
  [
    'lists nodes',
    async (way) => (await core(way).listNode()).items.map(({ metadata, spec }) => [metadata?.name, spec]),
  ],
  ['lists nodes in pages', async (way) => (await core(way).listNode({ limit: 2 })).metadata?.remainingItemCount],
  ['reads a namespace', (way) => core(way).readNamespace({ name: 'kube-system' })],
  ['reads a missing object', (way) => refusal(core(way).readNamespacedConfigMap({ namespace, name: 'none' }))],
  [
    'creates an invalid object',
    (way) => refusal(core(way).createNamespacedConfigMap({ namespace, body: { metadata: { name: 'A' } } })),
  ],
  [
    'patches an object',
    async (way) => {
      const made = await core(way).createNamespacedConfigMap({ namespace, body: settings(way) });
      const body = [{ op: 'add', path: '/data/b', value: '2' }];
      const options = setHeaderOptions('Content-Type', PatchStrategy.JsonPatch);
      const patched = await core(way).patchNamespacedConfigMap({ ...of(way), body }, options);
      return [made.data, patched.data, await core(way).deleteNamespacedConfigMap(of(way))];
    },
  ],
  ['watches objects', watched],
  ['runs an informer', informed],
  ['applies an object without a typed class', applied],
])(
  'the Kubernetes client for JavaScript gets the same results from the gateway and kube-apiserver when it %s',
  async (_, action) => {
    const [itself, through] = ways as [Way, Way];
    const seen = comparable(await action(itself), itself);
    expect(seen).toBeDefined();
    expect(comparable(await action(through), through)).toEqual(seen);
  },
);
