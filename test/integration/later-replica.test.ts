/**
 * A replica that started after writes of other resources had advanced the resourceVersion, as after each rolling
 * restart. A client of another replica has a resourceVersion older than the history of the new replica, although no
 * node has changed since.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { aggregated, apisPath, call, gateway, nodesPath, type HttpResponse } from '../labs/integration/http.ts';
import {
  create,
  createNode,
  nodePath,
  nodes,
  patch,
  releasePath,
  remove,
  type KubeList,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken } from '../labs/integration/login.ts';
import { startExtra, type Extra } from '../labs/integration/servers.ts';

const name = `later-${randomUUID()}`;
const configMap = `${releasePath}/configmaps/${name}`;
const versionOf = ({ metadata }: Pick<KubeObject, 'metadata'>): number => Number(metadata.resourceVersion);

const get = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> =>
  call(url, { token: await adminToken(), headers });

async function list(base: string, query: string): Promise<KubeList> {
  const response = await get(`${base}${apisPath}/nodes?${query}`);
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  return response.json as KubeList;
}

/** Watches nodes for one second. Returns the events for the test's node, and the messages of errors. */
async function eventsOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { text } = await get(`${url}&watch=true&timeoutSeconds=1`, headers);
  const events = text.split('\n').flatMap((line) => {
    const json = line.replace(/^data: /, '');
    return json.startsWith('{')
      ? [JSON.parse(json) as { type: string; object: KubeObject & { message?: string } }]
      : [];
  });
  return events
    .filter(({ type, object }) => type === 'ERROR' || object.metadata.name === name)
    .map(({ type, object }) => (type === 'ERROR' ? (object.message ?? '') : `${type} ${versionOf(object)}`));
}

/** The first page of a list, requested from another replica. */
let page: KubeList;
let later: Extra;
let apis: string;
let created: number;

beforeAll(async () => {
  created = versionOf(await createNode(name));
  for (;;) {
    page = await list(aggregated(0), 'limit=3');
    await create(`${releasePath}/configmaps`, { metadata: { name } });
    await remove(configMap);
    later = await startExtra();
    await later.ready();
    const changed = Math.max(...(await nodes()).items.map(versionOf));
    if (changed <= versionOf(page as unknown as KubeObject)) break;
    // A node has just renewed its status, as every node does every ten minutes.
    await later.stop();
  }
  apis = `https://${lab().address}:${later.ports.aggregated}`;
});
afterAll(async () => {
  await later.stop();
  await remove(configMap);
  await remove(nodePath(name));
});

test('a newly started replica continues a paged list that started at another replica', async () => {
  const { metadata, items } = await list(apis, `limit=500&continue=${page.metadata.continue}`);
  expect(metadata.resourceVersion).toBe(page.metadata.resourceVersion);
  const all = (await nodes()).items.map((node) => node.metadata.name);
  expect([...page.items, ...items].map((node) => node.metadata.name)).toEqual(all.toSorted());
});

test('a newly started replica continues a watch without missing changes', async () => {
  const from = page.metadata.resourceVersion;
  const changed = versionOf(await patch(nodePath(name), { metadata: { labels: { later: 'true' } } }));
  // These lists wait until both replicas have seen the change.
  for (const base of [apis, aggregated(0)]) await list(base, 'limit=1');
  const seen = [`MODIFIED ${changed}`];
  expect(await eventsOf(`${apis}${apisPath}/nodes?resourceVersion=${from}`)).toEqual(seen);
  const paths = [later.baseURL, gateway(0)].map((base) => `${base}${nodesPath}`);
  const requests = paths.flatMap((path) => [
    eventsOf(`${path}?resourceVersion=${from}`),
    eventsOf(`${path}?resourceVersion=${from}`, { accept: 'text/event-stream' }),
    eventsOf(`${path}?allowWatchBookmarks=false`, { accept: 'text/event-stream', 'last-event-id': from }),
  ]);
  for (const response of requests) expect(await response).toEqual(seen);
});

test('a newly started replica rejects a resourceVersion as too old if the replica may have missed later changes', async () => {
  const from = created - 1;
  const refusal = [expect.stringMatching(new RegExp(`^too old resource version: ${from} \\(\\d+\\)$`))];
  expect(await eventsOf(`${apis}${apisPath}/nodes?resourceVersion=${from}`)).toEqual(refusal);
  expect(await eventsOf(`${later.baseURL}${nodesPath}?resourceVersion=${from}`)).toEqual(refusal);
});

const classes = (base: string): string => `${base}${nodesPath.replace(/nodes$/, 'priorityclasses')}`;

test('a newly started replica does not cache a resource before the first request for that resource', async () => {
  const first = (await get(classes(gateway(0)))).json as KubeList;
  await create(`${releasePath}/configmaps`, { metadata: { name } });
  const started = (await get(classes(later.baseURL))).json as KubeList;
  expect(Number(started.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion));
  const { text } = await get(
    `${classes(later.baseURL)}?watch=true&timeoutSeconds=1&resourceVersion=${first.metadata.resourceVersion}`,
  );
  expect(text).toBe('');
});
