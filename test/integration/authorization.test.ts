/**
 * Compares the server's authorization with kube-apiserver's. Random users with random rights send random requests. A
 * response must not contain an object unless kube-apiserver allows the user the same verb on the object. Objects that
 * the user cannot read must not affect the response. CASES is the number of requests; SEED repeats a run.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { eventually } from '../labs/integration/eventually.ts';
import { aggregated, apisPath, call, gateway } from '../labs/integration/http.ts';
import { bind, create, createClusterRole, remove, removeClusterRole, unbind } from '../labs/integration/kube.ts';
import { runningPods, startLogNode, type LogNode } from '../labs/integration/log-node.ts';
import { createGrants, grant, groupOf } from '../labs/integration/rights/grants.ts';
import { logLines, services } from '../labs/integration/rights/services.ts';
import {
  container,
  createObjects,
  namespaces,
  removeObjects,
  types,
  type TestObject,
} from '../labs/integration/rights/objects.ts';
import { Oracle, type Caller } from '../labs/integration/rights/oracle.ts';
import { requests, type Request } from '../labs/integration/rights/requests.ts';
import { connect, request, type Received, type Transport } from '../labs/integration/rights/transport.ts';
import { addUsers, tokenOf } from '../labs/integration/users.ts';

const cases = Number(process.env['CASES'] ?? 2_000);
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const casesOfBatch = 1_000;
const usersOfBatch = 10;
const grantsOfBatch = 24;
/** Parallel requests. */
const atOnce = 20;
/** Milliseconds until a lost right takes effect for new requests and for open streams (docs/reference/api.md). */
const maxDecisionAge = 12_000;
const maxStreamDelay = 15_000;

const batches = Array.from({ length: Math.ceil(cases / casesOfBatch) }, (_, index) => `rights-${index}`);
const usersOf = (batch: string): string[] => Array.from({ length: usersOfBatch }, (_, user) => `${batch}-user-${user}`);
const revoked = 'rights-revoked';

let node: LogNode;
let objects: readonly TestObject[];
let removeUsers: () => Promise<void>;

beforeAll(async () => {
  const users = batches.flatMap((batch) => usersOf(batch).map((name, user) => [name, [groupOf(batch, user)]] as const));
  removeUsers = await addUsers({ ...Object.fromEntries(users), [revoked]: [] });
  node = await startLogNode(Object.fromEntries(namespaces.map((name) => [name, [container]])));
  objects = await createObjects(node);
  for (const namespace of namespaces) {
    await runningPods(namespace, 2);
    node.write(namespace, container, ...logLines(namespace));
  }
}, 300_000);
afterAll(async () => {
  await removeObjects(objects);
  await node.stop();
  await removeUsers();
}, 300_000);

/** Removes the parts that differ between two equal responses. */
const masked = (text: string): string =>
  text.replaceAll(/"resourceVersion":\s*"\d+"|^id: \d+$|"auditID":"[^"]*"|"retryAfterSeconds":\d+/gm, '');

const absentName = (name: string): string => `${name.slice(0, -8)}${'0'.repeat(8)}`;

/** Reports whether the caller is allowed to read the object of this name, but not a missing object of the same kind. */
async function hasRightTo(
  name: string,
  oracle: Oracle,
  caller: Caller,
  attributesOf: (name: string) => Readonly<Record<string, string>>,
): Promise<boolean> {
  for (const verb of ['get', 'list', 'watch']) {
    const [isAllowed, isAbsentAllowed] = await Promise.all(
      [name, absentName(name)].map((one) => oracle.reviews(caller, { verb, ...attributesOf(one) })),
    );
    if (isAllowed === true && isAbsentAllowed !== true) return true;
  }
  return false;
}

/** Reports whether a role names the object in any namespace. Any right in a namespace reveals the namespace's name. */
async function isNamedByRole(oracle: Oracle, caller: Caller, { type, name }: TestObject): Promise<boolean> {
  const { group, resource } = type;
  for (const namespace of ['', 'kube-system', ...namespaces])
    if (await hasRightTo(name, oracle, caller, (one) => ({ group, resource, namespace, name: one }))) return true;
  if (resource !== types.namespaces.resource) return false;
  for (const inside of Object.values(types)) {
    const attributesOf = (namespace: string): Record<string, string> => ({
      group: inside.group,
      resource: inside.resource,
      namespace,
    });
    if (await hasRightTo(name, oracle, caller, attributesOf)) return true;
  }
  return false;
}

async function check(oracle: Oracle, caller: Caller, sent: Request): Promise<void> {
  const received = await request(sent.url, { token: caller.token, ...sent });
  const problems: string[] = [];
  const visible: TestObject[] = [];
  for (const object of objects) {
    const isAllowed = await sent.allows(oracle, caller, object);
    if (isAllowed) visible.push(object);
    else if (received.text.includes(object.marker))
      problems.push(`shows ${object.type.resource} ${object.namespace}/${object.name}`);
  }
  if (received.status === 200 && sent.finds !== undefined)
    problems.push(...(await sent.finds(oracle, caller, received.text)));
  if (received.status >= 500) problems.push('is a 5xx');
  problems.push(...(await compared(oracle, caller, sent, received, visible)));
  const { named } = sent;
  if (named !== undefined && visible.every(({ name }) => name !== named.name)) {
    const absent = absentName(named.name);
    const twin = await request(sent.url.replaceAll(named.name, absent), { token: caller.token, ...sent });
    const [other, ours] = [twin, received].map(({ status, text }) => `${status} ${masked(text)}`);
    if (other?.replaceAll(absent, named.name) !== ours && !(await isNamedByRole(oracle, caller, named)))
      problems.push(`differs from what is not there: ${other}`);
  }
  if (problems.length > 0)
    throw new Error(
      `${caller.username} ${sent.transport} ${decodeURIComponent(sent.url)}: ${received.status} ${problems.join('; ')}\n${received.text.slice(0, 2_000)}`,
    );
}

/** Returns the differences between a response and what kube-apiserver allows. */
async function compared(
  oracle: Oracle,
  caller: Caller,
  { isAllowed, selects, counts, isPartial }: Request,
  { status, text }: Received,
  visible: readonly TestObject[],
): Promise<string[]> {
  const problems: string[] = [];
  if (isAllowed !== undefined && (await isAllowed(oracle, caller)) !== (status === 200))
    problems.push(`kube-apiserver ${status === 200 ? 'forbids' : 'allows'} it`);
  if (status !== 200 || selects === undefined) return problems;
  const expected = visible.filter(selects);
  if (counts === true) {
    const { totalItems } = JSON.parse(text) as { totalItems: number };
    const isRight = isPartial === true ? totalItems <= expected.length : totalItems === expected.length;
    if (!isRight) problems.push(`counts ${totalItems} instead of ${expected.length}`);
    return problems;
  }
  if (isPartial === true) return problems;
  const missing = expected.find(({ marker }) => !text.includes(marker));
  if (missing !== undefined)
    problems.push(`does not show ${missing.type.resource} ${missing.namespace}/${missing.name}`);
  return problems;
}

/** Waits until the caches of the servers have every object and the latest binding. */
async function settled(batch: string): Promise<() => Promise<void>> {
  const name = `${batch}-settled`;
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespaces[0]}/rolebindings`;
  await create(path, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: revoked }],
  });
  const token = await tokenOf(revoked);
  await eventually('the binding counts', async () => {
    const { status } = await call(`${gateway()}/kapis/resources.platform.io/v1alpha3/configmaps`, { token });
    expect(status).toBe(200);
  });
  return () => remove(`${path}/${name}`);
}

// evidence: authorization-equals-kubernetes
describe(`authorization equals kube-apiserver's (SEED=${seed} CASES=${cases})`, () => {
  test.each(batches)(
    'the server and kube-apiserver authorize the generated callers %s equally',
    async (batch) => {
      const index = batches.indexOf(batch);
      const usernames = usersOf(batch);
      const grants = fc.sample(grant(usersOfBatch, objects, usernames), { numRuns: grantsOfBatch, seed: seed + index });
      const callers = await Promise.all(
        usernames.map(async (username, user): Promise<Caller> => ({
          username,
          groups: [groupOf(batch, user)],
          token: await tokenOf(username),
        })),
      );
      const removeGrants = await createGrants(batch, grants, usernames);
      const unsettle = await settled(batch);
      const oracle = new Oracle();
      const any = fc.oneof({ weight: 8, arbitrary: requests(objects) }, { weight: 1, arbitrary: services(usernames) });
      try {
        const checked = fc.assert(
          fc.asyncProperty(fc.array(any, { minLength: atOnce, maxLength: atOnce }), async (batchOf) => {
            await Promise.all(batchOf.map((one) => check(oracle, callers[one.user] as Caller, one)));
          }),
          { numRuns: casesOfBatch / atOnce, seed: seed + index },
        );
        const problem = await checked.then(
          () => '',
          (error: Error) => `${error.message}\n${String(error.cause)}`,
        );
        expect(problem).toBe('');
      } finally {
        await removeGrants();
        await unsettle();
      }
    },
    300_000,
  );
});

describe('when a binding is deleted', () => {
  const role = 'rights-everything';
  const kapis = '/kapis/resources.platform.io/v1alpha3';
  const [namespace] = namespaces;
  const core = `/api/v1/namespaces/${namespace}`;
  const follow = `logs?follow=true&namespaces=${namespace}`;

  /** Returns the URLs of streams, each with the transports that the stream supports. */
  const streams = (): [url: string, ...Transport[]][] => [
    [`${gateway()}${kapis}/configmaps?watch=true`, 'lines', 'server-sent events', 'WebSocket'],
    [`${gateway()}${kapis}/namespaces/${namespace}/configmaps?watch=true`, 'lines', 'server-sent events', 'WebSocket'],
    [`${gateway()}${kapis}/namespaces/${namespace}/secrets?watch=true`, 'lines', 'server-sent events', 'WebSocket'],
    [`${gateway()}${kapis}/nodes?watch=true`, 'lines', 'server-sent events', 'WebSocket'],
    [`${gateway()}${kapis}/namespaces/${namespace}?watch=true`, 'lines', 'server-sent events', 'WebSocket'],
    [`${gateway()}/kapis/logging.platform.io/v1alpha2/${follow}`, 'lines', 'server-sent events'],
    [`${gateway()}/kapis/tenant.platform.io/v1alpha2/${follow}`, 'lines', 'server-sent events'],
    [`${aggregated()}/apis/logging.platform.io/v1alpha2/${follow}`, 'lines', 'server-sent events'],
    [`${aggregated()}${apisPath}/nodes?watch=true`, 'lines', 'WebSocket'],
    [`${aggregated()}${apisPath}/watch/nodes`, 'lines', 'WebSocket'],
    [`${gateway()}${core}/configmaps?watch=true`, 'lines', 'WebSocket'],
    [`${gateway()}${core}/pods/web-one-${namespace.split('-').at(-1)}/log?follow=true`, 'lines'],
  ];

  const lists = (): string[] => [
    `${gateway()}${kapis}/configmaps`,
    `${gateway()}${kapis}/namespaces/${namespace}/configmaps`,
    `${gateway()}${kapis}/namespaces/${namespace}/secrets`,
    `${gateway()}${kapis}/namespaces/${namespace}`,
    `${gateway()}${kapis}/nodes`,
    `${gateway()}${kapis}/components`,
    `${gateway()}${kapis}/componenthealth`,
    `${gateway()}/kapis/iam.platform.io/v1alpha2/users`,
    `${aggregated()}${apisPath}/nodes`,
    `${aggregated()}/apis/logging.platform.io/v1alpha2/logs`,
    `${gateway()}${core}/configmaps`,
  ];

  let token: string;
  beforeAll(async () => {
    await createClusterRole(role, [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }]);
    token = await tokenOf(revoked);
  });
  afterAll(() => removeClusterRole(role));

  /** Waits until all lists return this status, so that no earlier cached decision is left. */
  const until = (status: number, timeout: number): Promise<unknown> =>
    Promise.all(
      lists().map((url) =>
        eventually(
          `${url} is ${status}`,
          async () => expect((await call(url, { token })).status).toBe(status),
          timeout,
        ),
      ),
    );

  test('deleting a binding ends access within 12 seconds for new requests, and within 15 seconds for open watches and log tails', async () => {
    await bind(role, role, { kind: 'User', name: revoked });
    await until(200, 60_000);
    const opened = await Promise.all(
      streams().flatMap(([url, ...transports]) =>
        transports.map(async (transport) => {
          const { status, stream, close } = await connect(url, { token, transport });
          expect([url, status]).toEqual([url, 200]);
          const ended = new Promise((resolve) => stream.resume().once('close', resolve));
          return { name: `${transport} ${url}`, ended, close };
        }),
      ),
    );
    await until(200, 60_000);
    await unbind(role);
    const late = new Set(opened.map(({ name }) => name));
    const all = Promise.all(opened.map(({ name, ended }) => ended.then(() => late.delete(name))));
    const deadline = new Promise((resolve) => setTimeout(resolve, maxStreamDelay).unref());
    await Promise.all([until(403, maxDecisionAge), Promise.race([all, deadline])]);
    for (const { close } of opened) close();
    expect([...late]).toEqual([]);
  });
});
