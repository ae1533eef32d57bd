import { afterEach, beforeEach, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { GrantedNamespaces, type Bindings } from '../../../../src/cluster/catalogue/granted-namespaces.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { FakeClock, FakeCluster, settle } from '../../../labs/cluster-fakes.ts';

let cluster: FakeCluster;
let granted: GrantedNamespaces;
let clock: FakeClock;
let version = 10;

const binding = (namespace: string, name: string, ...subjects: object[]): object => ({
  kind: 'RoleBinding',
  apiVersion: 'rbac.authorization.k8s.io/v1',
  metadata: { namespace, name, uid: `${namespace}/${name}`, resourceVersion: String((version += 1)) },
  ...(subjects.length === 0 ? {} : { subjects }),
});
const user = (name: string): object => ({ kind: 'User', name });
const groupOf = (name: string): object => ({ kind: 'Group', name });

beforeEach(async () => {
  cluster = new FakeCluster();
  clock = new FakeClock();
  granted = new GrantedNamespaces({ client: cluster, log: createLogger({ silent: true }), clock });
  granted.start();
  await settle();
});
afterEach(() => granted.stop());

async function begin(...bindings: object[]): Promise<void> {
  await cluster.list(bindings, String(version));
}
const of = (username: string, ...groups: string[]): readonly string[] =>
  [...granted.of({ username, groups }).keys()].toSorted();

test('role bindings are found by user, group and ServiceAccount', async () => {
  expect(granted.hasSynced()).toBe(false);
  await begin(
    binding('b', 'one', user('anna'), user('anna'), groupOf('dev')),
    binding('a', 'two', user('anna')),
    binding('c', 'three', { kind: 'ServiceAccount', name: 'robot', namespace: 'x' }),
    binding('d', 'four', { kind: 'ServiceAccount', name: 'robot' }),
    binding('e', 'none'),
    binding('f', 'other', { kind: 'Else', name: 'anna' }),
  );
  expect(granted.hasSynced()).toBe(true);
  expect(of('anna')).toEqual(['a', 'b']);
  expect(of('ben', 'dev', 'ops')).toEqual(['b']);
  expect(of('dev')).toEqual([]);
  expect(of('ben', 'anna')).toEqual([]);
  expect(of('system:serviceaccount:x:robot')).toEqual(['c']);
  expect(of('system:serviceaccount:d:robot')).toEqual(['d']);
});

test('a namespace stays granted while at least one role binding names the subject', async () => {
  await begin(binding('a', 'one', user('anna')), binding('a', 'two', user('anna')));
  const gone = (name: string): object => ({ type: 'DELETED', object: binding('a', name, user('anna')) });
  await cluster.last.send(gone('one'));
  expect(of('anna')).toEqual(['a']);
  await cluster.last.send({ type: 'MODIFIED', object: binding('a', 'two', user('ben')) });
  expect(of('anna')).toEqual([]);
  expect(of('ben')).toEqual(['a']);
  await cluster.last.send(gone('two'), gone('never'));
  expect(of('ben')).toEqual([]);
});

test('the same map is returned for a caller until a role binding of the caller changes', async () => {
  await begin(
    binding('b', 'one', user('anna')),
    binding('a', 'two', groupOf('dev')),
    binding('c', 'three', groupOf('ops')),
  );
  const [anna, ben] = [
    { username: 'anna', groups: ['dev'] },
    { username: 'ben', groups: ['dev'] },
  ];
  const before = [granted.of(anna), granted.of(ben)];
  await cluster.last.send({ type: 'ADDED', object: binding('d', 'four', groupOf('ops')) });
  expect(granted.of(anna)).toBe(before[0]);
  expect(granted.of(ben)).toBe(before[1]);
  await cluster.last.send({ type: 'ADDED', object: binding('e', 'five', user('anna')) });
  expect(of('anna', 'dev')).toEqual(['a', 'b', 'e']);
  expect(granted.of(ben)).toBe(before[1]);
});

test('requests with equal names get the same map, even if each request has its own user object', async () => {
  await begin(
    binding('b', 'one', user('anna')),
    binding('a', 'two', groupOf('dev')),
    binding('c', 'three', user('ben')),
  );
  const first = granted.of({ username: 'anna', groups: ['dev'] });
  expect(granted.of({ username: 'anna', groups: ['ops', 'dev'] })).toBe(first);
  expect([...granted.of({ username: 'ben', groups: ['dev'] }).keys()].toSorted()).toEqual(['a', 'c']);
});

const stateOf = (namespace: string, ...groups: string[]): Bindings | undefined =>
  granted.of({ username: 'anna', groups }).get(namespace);

test('the state of a namespace changes when one of its role bindings is added, changed or deleted', async () => {
  await begin(binding('a', 'one', user('anna')), binding('b', 'one', user('anna')));
  const states = [[stateOf('a'), stateOf('b')]];
  for (const [type, name] of [
    ['ADDED', 'two'],
    ['MODIFIED', 'one'],
    ['DELETED', 'two'],
  ]) {
    await cluster.last.send({ type, object: binding('a', name ?? '', user('anna')) });
    states.push([stateOf('a'), stateOf('b')]);
  }
  expect(new Set(states.map(([a]) => JSON.stringify(a))).size).toBe(4);
  expect(new Set(states.map(([, b]) => JSON.stringify(b))).size).toBe(1);
});

const versioned = (name: string, resourceVersion: number): object => {
  version = resourceVersion - 1;
  return binding('a', name, user('anna'));
};

test('replaced role bindings change the state, even if the sum of their versions is the same', async () => {
  await begin(versioned('one', 50), versioned('two', 60));
  const before = stateOf('a');
  await cluster.last.send(
    { type: 'DELETED', object: versioned('one', 100) },
    { type: 'DELETED', object: versioned('two', 101) },
    { type: 'ADDED', object: versioned('three', 110) },
  );
  expect(stateOf('a')).not.toEqual(before);
});

/** A change of one of three role bindings in a namespace, each with any of the caller's subjects. */
const change = fc.record({
  name: fc.constantFrom('one', 'two', 'three'),
  subjects: fc.subarray(['anna', 'dev', 'ops']),
});

test('equal states of a namespace mean the same unchanged role bindings, even for a caller with several subjects', async () => {
  await begin();
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
      for (const name of ['one', 'two', 'three'])
        await cluster.last.send({ type: 'DELETED', object: binding('a', name) });
      /** Versions of the present bindings by name, and all these versions by state. */
      const versions = new Map<string, number>();
      const byState = new Map<string, string>();
      for (const { name, subjects } of changes) {
        const object = binding('a', name, ...subjects.map((subject) => (subject === 'anna' ? user : groupOf)(subject)));
        await cluster.last.send({ type: subjects.length === 0 ? 'DELETED' : 'MODIFIED', object });
        if (subjects.length === 0) versions.delete(name);
        else versions.set(name, version);
        const present = JSON.stringify(['one', 'two', 'three'].map((one) => versions.get(one)));
        const state = JSON.stringify(stateOf('a', 'dev', 'ops') ?? null);
        expect(byState.get(state) ?? present).toBe(present);
        byState.set(state, present);
      }
    }),
    { numRuns: 100 },
  );
});

test('a list of all role bindings, as after a lost watch, changes only the states of changed namespaces', async () => {
  const kept = binding('a', 'one', user('anna'));
  await begin(kept, binding('b', 'one', user('anna')), binding('c', 'one', user('anna')));
  const before = [stateOf('a'), stateOf('b'), stateOf('c')];
  await cluster.last.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
  await clock.advance(10_000);
  await begin(kept, binding('b', 'one', user('anna')));
  expect(stateOf('a')).toEqual(before[0]);
  expect(stateOf('b')).not.toEqual(before[1]);
  expect(of('anna')).toEqual(['a', 'b']);
});
