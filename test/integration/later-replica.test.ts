/**
 * A replica that began when other resources had moved the revision on, as after each rolling restart: where a client of another replica
 * stands lies before its history, but nothing has happened between.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { aggregated, apisPath, call, gateway, nodesPath, type Answer } from '../labs/integration/http.ts';
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

const get = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  call(url, { token: await adminToken(), headers });

async function list(base: string, query: string): Promise<KubeList> {
  const answer = await get(`${base}${apisPath}/nodes?${query}`);
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return answer.json as KubeList;
}

/** What a watch of a second says of the test's node, and its error. */
async function told(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
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

/** The first page of another replica. */
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
    // A node has told kube-apiserver just now that it is alive, as each does every ten minutes.
    await later.stop();
  }
  apis = `https://${lab().address}:${later.ports.aggregated}`;
});
afterAll(async () => {
  await later.stop();
  await remove(configMap);
  await remove(nodePath(name));
});

test('goes on with a list in pages that another replica began', async () => {
  const { metadata, items } = await list(apis, `limit=500&continue=${page.metadata.continue}`);
  expect(metadata.resourceVersion).toBe(page.metadata.resourceVersion);
  const all = (await nodes()).items.map((node) => node.metadata.name);
  expect([...page.items, ...items].map((node) => node.metadata.name)).toEqual(all.toSorted());
});

test('goes on with a watch, and knows as long as it lives', async () => {
  const from = page.metadata.resourceVersion;
  const changed = versionOf(await patch(nodePath(name), { metadata: { labels: { later: 'true' } } }));
  // Now both have seen that.
  for (const base of [apis, aggregated(0)]) await list(base, 'limit=1');
  const seen = [`MODIFIED ${changed}`];
  expect(await told(`${apis}${apisPath}/nodes?resourceVersion=${from}`)).toEqual(seen);
  const paths = [later.baseURL, gateway(0)].map((base) => `${base}${nodesPath}`);
  const asked = paths.flatMap((path) => [
    told(`${path}?resourceVersion=${from}`),
    told(`${path}?resourceVersion=${from}`, { accept: 'text/event-stream' }),
    told(`${path}?allowWatchBookmarks=false`, { accept: 'text/event-stream', 'last-event-id': from }),
  ]);
  for (const answer of asked) expect(await answer).toEqual(seen);
});

test('says that it does not know what happened before', async () => {
  const from = created - 1;
  const refusal = [expect.stringMatching(new RegExp(`^too old resource version: ${from} \\(\\d+\\)$`))];
  expect(await told(`${apis}${apisPath}/nodes?resourceVersion=${from}`)).toEqual(refusal);
  expect(await told(`${later.baseURL}${nodesPath}?resourceVersion=${from}`)).toEqual(refusal);
});

const classes = (base: string): string => `${base}${nodesPath.replace(/nodes$/, 'priorityclasses')}`;

test('learns of a resource when it is first asked for, and no sooner', async () => {
  const first = (await get(classes(gateway(0)))).json as KubeList;
  await create(`${releasePath}/configmaps`, { metadata: { name } });
  const begun = (await get(classes(later.baseURL))).json as KubeList;
  expect(Number(begun.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion));
  const { text } = await get(
    `${classes(later.baseURL)}?watch=true&timeoutSeconds=1&resourceVersion=${first.metadata.resourceVersion}`,
  );
  expect(text).toBe('');
});
