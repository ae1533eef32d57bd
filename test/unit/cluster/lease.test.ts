import { afterEach, expect, test } from '@jest/globals';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { Lease } from '../../../src/cluster/lease.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const name = 'platform-apiserver';
const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const second = 1_000;

const running: Lease[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop();
});

interface Replica {
  readonly lease: Lease;
  readonly client: MemoryClient;
  readonly lines: () => string[];
}

function lab() {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  const replica = async (identity: string): Promise<Replica> => {
    const client = cluster.client();
    const { log, lines } = logOfLines();
    const lease = new Lease({ client, namespace, name, identity, clock, log });
    running.push(lease);
    lease.start();
    await settle();
    return { lease, client, lines };
  };
  const spec = (): Record<string, unknown> => (cluster.get(path, name)?.['spec'] ?? {}) as Record<string, unknown>;
  return { clock, cluster, replica, spec };
}

const held = (...replicas: readonly Replica[]): boolean[] => replicas.map(({ lease }) => lease.isHeld());

test('one of two candidates acquires the Lease and keeps it', async () => {
  const { clock, replica, spec } = lab();
  const [one, two] = [await replica('one'), await replica('two')];
  for (let time = 0; time < 20; time += 1) {
    expect(held(one, two)).toEqual([true, false]);
    await clock.advance(7 * second);
  }
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  expect(spec()).toEqual({
    holderIdentity: 'one',
    leaseDurationSeconds: 15,
    leaseTransitions: 1,
    acquireTime: time,
    renewTime: time,
  });
});

test('one of several concurrent candidates acquires the Lease', async () => {
  const { clock, replica } = lab();
  const all = await Promise.all(['a', 'b', 'c'].map(replica));
  await clock.advance(10 * second);
  expect(held(...all).filter(Boolean)).toHaveLength(1);
});

test('a candidate takes over the Lease of a holder that no longer renews it, but only after that holder considers the Lease lost', async () => {
  const { clock, replica } = lab();
  const [one, two] = [await replica('one'), await replica('two')];
  one.client.before = () => {
    throw unreachable(new Error('reset'));
  };
  for (let time = 0; time < 40; time += 1) {
    await clock.advance(second);
    expect(held(one, two)).not.toEqual([true, true]);
  }
  expect(held(one, two)).toEqual([false, true]);
  one.client.before = () => undefined;
  await clock.advance(20 * second);
  expect(held(one, two)).toEqual([false, true]);
  expect(one.lines().filter((line) => line.includes('lease read or write failed'))).toHaveLength(1);
});

test('a stopping candidate releases the Lease, and another candidate can acquire the Lease at once', async () => {
  const { clock, replica, spec } = lab();
  const [one, two] = [await replica('one'), await replica('two')];
  await one.lease.stop();
  expect(spec()['holderIdentity']).toBe('');
  await clock.advance(7 * second);
  expect(held(one, two)).toEqual([false, true]);
  await one.lease.stop();
  expect(spec()['holderIdentity']).toBe('two');
});

test.each([
  ['acquired', 'POST', 0],
  ['renewed', 'PUT', 6 * second],
])('a stopping candidate releases a Lease that is being %s', async (_, write, later) => {
  const { clock, cluster, spec } = lab();
  const client = cluster.client();
  const lease = new Lease({ client, namespace, name, identity: 'one', clock, log: logOfLines().log });
  let hasArrived = false;
  const gate = Promise.withResolvers<void>();
  client.before = ({ method }) => {
    if (method !== write) return undefined;
    hasArrived = true;
    return gate.promise;
  };
  lease.start();
  await settle();
  await clock.advance(later);
  expect(hasArrived).toBe(true);
  const stopped = lease.stop();
  await settle();
  gate.resolve();
  await stopped;
  await settle();
  expect(spec()['holderIdentity']).toBe('');
});

test('the Lease of an earlier process expires even if the clock of that process was wrong', async () => {
  const { clock, cluster, replica } = lab();
  cluster.put(path, { metadata: { name }, spec: { holderIdentity: 'gone', renewTime: '2999-01-01T00:00:00.000000Z' } });
  const one = await replica('one');
  await clock.advance(8 * second);
  expect(held(one)).toEqual([false]);
  await clock.advance(15 * second);
  expect(held(one)).toEqual([true]);
});

test('a deleted Lease is created again', async () => {
  const { clock, cluster, replica } = lab();
  const one = await replica('one');
  cluster.delete(path, name);
  await clock.advance(7 * second);
  expect(held(one)).toEqual([true]);
  expect(cluster.get(path, name)).toBeDefined();
});
