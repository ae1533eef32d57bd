import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { GrantedNamespaces } from '../../../../src/cluster/catalogue/granted-namespaces.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { bookmark, FakeClock, FakeCluster, settle } from '../../../labs/cluster-fakes.ts';

let cluster: FakeCluster;
let granted: GrantedNamespaces;
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
  granted = new GrantedNamespaces({ client: cluster, log: createLogger({ silent: true }), clock: new FakeClock() });
  granted.start();
  await settle();
  await cluster.last.open();
});
afterEach(() => granted.stop());

async function begin(...bindings: object[]): Promise<void> {
  await cluster.last.send(...bindings.map((object) => ({ type: 'ADDED', object })), bookmark(String(version), true));
}
const of = (username: string, ...groups: string[]): readonly string[] => [...granted.of({ username, groups }).keys()];

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
  expect([...granted.of(anna).keys()]).toEqual(['a', 'b', 'e']);
  expect(granted.of(ben)).toBe(before[1]);
});

test('the number of a namespace changes when one of its role bindings is added, changed or deleted', async () => {
  await begin(binding('a', 'one', user('anna')), binding('b', 'one', user('anna')));
  const numbers = [granted.of({ username: 'anna', groups: [] })];
  for (const [type, name] of [
    ['ADDED', 'two'],
    ['MODIFIED', 'one'],
    ['DELETED', 'two'],
  ]) {
    await cluster.last.send({ type, object: binding('a', name ?? '', user('anna')) });
    numbers.push(granted.of({ username: 'anna', groups: [] }));
  }
  expect(new Set(numbers.map((one) => one.get('a'))).size).toBe(4);
  expect(new Set(numbers.map((one) => one.get('b'))).size).toBe(1);
});
