/**
 * Watches over WebSockets: the same messages as kube-apiserver sends for its own nodes, received by Node's
 * implementation of the browser API.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from 'undici';
import { parse } from 'yaml';
import { listenTo, tokenProtocol, type Listening } from '../fakes/web-socket.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { apisPath, aggregated, gateway, nodesPath, secureGateway } from '../labs/integration/http.ts';
import {
  bind,
  create,
  createNode,
  createServiceAccount,
  nodePath,
  patch,
  remove,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken } from '../labs/integration/login.ts';
import { readLog } from '../labs/integration/log.ts';
import { remember } from '../labs/integration/secrets.ts';
import { served } from '../labs/integration/served.ts';
import { replicaLogs } from '../labs/integration/servers.ts';

interface Event {
  readonly type: string;
  readonly object: KubeObject;
}

const account = 'web-socket';
let serviceToken = '';
let platformToken = '';
beforeAll(async () => {
  await createServiceAccount(account);
  await bind(account, 'platform-node-reader', { kind: 'ServiceAccount', name: account, namespace: 'default' });
  serviceToken = await serviceAccountToken(account);
  platformToken = await adminToken();
  for (const token of [serviceToken, platformToken]) remember(token, tokenProtocol(token));
});
afterAll(async () => {
  await unbind(account);
  await removeServiceAccount(account);
});

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }];
}
const cluster = (): Readonly<Record<string, string>> =>
  (parse(readFileSync(lab().kubeconfig, 'utf8')) as Kubeconfig).clusters[0].cluster;
const clusterCA = (): Buffer => Buffer.from(cluster()['certificate-authority-data'] ?? '', 'base64');

const socket = (base: string, path: string): string => `${base.replace(/^http/, 'ws')}${path}`;
const withToken = (url: string, token: string, ca: string | Buffer): Promise<Listening> =>
  listenTo(url, {
    protocols: ['any', tokenProtocol(token)],
    // kube-apiserver requires an Origin header, which browsers send.
    headers: { origin: 'https://console.example.com' },
    dispatcher: new Agent({ connect: { ca } }),
  });

/** Converts a node of the core API to the node that this server returns. */
const asKapis = ({ metadata, ...rest }: KubeObject): object => {
  const { managedFields: _, ...shown } = metadata;
  return { ...rest, metadata: { ...shown, selfLink: nodePath(metadata.name) } };
};

/** Watches core nodes at kube-apiserver. */
const core = (query: string): Promise<Listening> =>
  withToken(socket(cluster()['server'] ?? '', `/api/v1/nodes?${query}`), serviceToken, clusterCA());
interface Way {
  readonly url: () => string;
  readonly token: () => string;
  readonly ca: () => string | Buffer;
  readonly shown: (node: KubeObject) => object;
}
const ways: Readonly<Record<string, Way>> = {
  'through the aggregator': {
    url: () => socket(cluster()['server'] ?? '', `${apisPath}/nodes`),
    token: () => serviceToken,
    ca: clusterCA,
    shown: served,
  },
  'at the aggregated port': {
    url: () => socket(aggregated(), `${apisPath}/nodes`),
    token: () => platformToken,
    ca: () => lab().authority,
    shown: served,
  },
  'at the gateway': {
    url: () => socket(gateway(), nodesPath),
    token: () => platformToken,
    ca: () => '',
    shown: asKapis,
  },
  'at the gateway over TLS': {
    url: () => socket(secureGateway(), nodesPath),
    token: () => serviceToken,
    ca: () => lab().authority,
    shown: asKapis,
  },
};

const events = ({ messages }: Listening): Event[] => messages.map((message) => JSON.parse(message) as Event);

/**
 * Changes a node while kube-apiserver and this server are watched over WebSockets; resolves when both watches have
 * ended.
 */
async function watchBoth(
  way: string,
): Promise<readonly [other: Listening, ours: Listening, ends: Awaited<Listening['closed']>[]]> {
  const { url, token, ca } = ways[way] as Way;
  const name = `web-socket-${randomUUID()}`;
  const query = `watch=true&timeoutSeconds=5&fieldSelector=metadata.name%3D${name}`;
  const both = [await core(query), await withToken(`${url()}?${query}`, token(), ca())] as const;
  await createNode(name);
  for (const value of ['small', 'x'.repeat(100), 'x'.repeat(70_000)])
    await patch(nodePath(name), { metadata: { annotations: { 'example.com/value': value } } });
  await remove(nodePath(name));
  await Promise.all(both.map((watch) => watch.until(5)));
  return [...both, await Promise.all(both.map(({ closed }) => closed))];
}

// Each watch lasts 5 s, so all run at the same time.
let watched: ReadonlyMap<string, PromiseSettledResult<Awaited<ReturnType<typeof watchBoth>>>>;
beforeAll(async () => {
  const names = Object.keys(ways);
  const results = await Promise.allSettled(names.map(watchBoth));
  watched = new Map(names.map((name, index) => [name, results[index] as (typeof results)[number]]));
});

describe.each(Object.keys(ways))('%s', (way) => {
  const { url, ca, shown } = ways[way] as Way;

  test('a watch over a WebSocket sends the same messages and close code as kube-apiserver', () => {
    const result = watched.get(way);
    if (result?.status !== 'fulfilled') throw new Error('the watches failed', { cause: result?.reason });
    const [other, ours, ends] = result.value;
    const expected = events(other);
    expect(expected.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'MODIFIED', 'DELETED']);
    expect(events(ours)).toEqual(expected.map(({ type, object }) => ({ type, object: shown(object) })));
    for (const message of [...other.messages, ...ours.messages]) expect(message).toMatch(/^\{"type":.*\}\n$/);
    expect(ends.map(({ code }) => code)).toEqual([1000, 1000]);
    expect([other, ours].map(({ client }) => client.protocol)).toEqual(['any', 'any']);
  });

  test('a WebSocket without a token is rejected', async () => {
    const dispatcher = new Agent({ connect: { ca: ca() } });
    await expect(listenTo(`${url()}?watch=true`, { dispatcher })).rejects.toThrow('the handshake failed');
  });
});

test('an uncached resource can be watched over a WebSocket with the identity of the caller', async () => {
  const path = '/api/v1/namespaces/default/secrets';
  const name = `web-socket-${randomUUID()}`;
  const url = socket(
    gateway(),
    `${nodesPath.replace(/nodes$/, 'namespaces/default/secrets')}?watch=true&timeoutSeconds=2`,
  );
  const watch = await withToken(`${url}&fieldSelector=metadata.name%3D${name}`, platformToken, '');
  await create(path, { metadata: { name }, stringData: { large: 'x'.repeat(70_000) } });
  await remove(`${path}/${name}`);
  expect((await watch.closed).code).toBe(1000);
  expect(events(watch).map(({ type, object }) => [type, object.metadata.name])).toEqual([
    ['ADDED', name],
    ['DELETED', name],
  ]);
});

test('the WebSocket client of Node receives the events of a watch, and the log does not contain the token', async () => {
  const mark = `audit-${randomUUID()}`;
  const client = new WebSocket(socket(gateway(), `${nodesPath}?watch=true&timeoutSeconds=1&labelSelector=!${mark}`), [
    tokenProtocol(platformToken),
    'any',
  ]);
  const messages: string[] = [];
  client.addEventListener('message', ({ data }) => messages.push(data as string));
  const { code } = await new Promise<CloseEvent>((resolve) => client.addEventListener('close', resolve));
  expect(code).toBe(1000);
  expect(messages.length).toBeGreaterThan(2);
  const line = await eventually('the watch is logged', () => {
    const found = readLog(replicaLogs()[0] ?? '').find(({ path }) => String(path).includes(mark));
    if (found === undefined) throw new Error('not yet');
    return found;
  });
  expect(line).toMatchObject({ method: 'GET', verb: 'watch', status: 101, user: 'admin' });
  expect(line).not.toHaveProperty('aborted');
});
