import { afterEach, describe, expect, test } from '@jest/globals';
import { Informer } from '../../../../src/cluster/cache/informer.ts';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { configMap, FakeClock, FakeCluster, listOf, settle, status } from '../../../labs/cluster-fakes.ts';

const running: Informer<KubeObject>[] = [];
afterEach(() => {
  for (const informer of running.splice(0)) informer.stop();
});

async function lab(path = '/api/v1/configmaps'): Promise<{
  cluster: FakeCluster;
  clock: FakeClock;
  informer: Informer<KubeObject>;
  changes: string[];
}> {
  const cluster = new FakeCluster();
  const clock = new FakeClock();
  const changes: string[] = [];
  const informer = new Informer({
    client: cluster,
    path,
    log: createLogger({ silent: true }),
    clock,
  });
  running.push(informer);
  informer.onChange((type, { metadata }) => changes.push(`${type} ${metadata.name}@${metadata.resourceVersion}`));
  informer.start();
  await settle();
  return { cluster, clock, informer, changes };
}

const event = (type: string, name: string, version: string): unknown => ({ type, object: configMap(name, version) });

describe('an informer', () => {
  test.each([
    ['all namespaces', '/api/v1/configmaps'],
    ['one namespace', '/api/v1/namespaces/default/configmaps'],
  ])('an informer of %s contains the objects of the list and of the watch', async (_, path) => {
    const { cluster, informer, changes } = await lab(path);
    const waiting = informer.waitForSync();
    const watch = await cluster.list([configMap('a', '5')], '10');
    await waiting;
    expect(informer.hasSynced()).toBe(true);
    await watch.send(event('ADDED', 'b', '11'), event('MODIFIED', 'a', '12'), event('DELETED', 'b', '13'));
    expect(changes).toEqual(['ADDED a@5', 'ADDED b@11', 'MODIFIED a@12', 'DELETED b@13']);
    expect(informer.get('default', 'a')?.metadata.resourceVersion).toBe('12');
    expect(informer.get('default', 'b')).toBeUndefined();
    expect(informer.get('', 'a')).toBeUndefined();
    expect(informer.get('other', 'a')).toBeUndefined();
    expect(informer.list()).toHaveLength(1);
    await informer.waitForSync();
  });

  test('other tasks run while an informer replaces many objects after a list', async () => {
    const { cluster, informer } = await lab();
    const count = 50_000;
    const turns = new Set<number>();
    let turn = 0;
    const timer = setInterval(() => (turn += 1));
    informer.onChange(() => turns.add(turn));
    const items = Array.from({ length: count }, (_, index) => configMap(`name-${index}`, '5'));
    await cluster.last.respond(200, listOf(items, { resourceVersion: '10' }));
    await informer.waitForSync();
    clearInterval(timer);
    expect(informer.size).toBe(count);
    expect(turns.size).toBeGreaterThan(1);
  });

  test('an informer reports the differences between two lists as changes', async () => {
    const { cluster, clock, informer, changes } = await lab();
    const names = ['same', 'changed', 'gone', 'again'];
    const watch = await cluster.list(
      names.map((name, index) => configMap(name, String(index + 1))),
      '10',
    );
    changes.length = 0;
    await watch.send({ type: 'ERROR', object: status(410, 'Expired') });
    await clock.advance(0);
    const again = configMap('again', '14');
    const recreated = { ...again, metadata: { ...again.metadata, uid: 'another' } };
    await cluster.list([configMap('same', '1'), configMap('changed', '12'), recreated, configMap('new', '15')], '20');
    expect(changes).toEqual([
      'DELETED gone@3',
      'MODIFIED changed@12',
      'DELETED again@4',
      'ADDED again@14',
      'ADDED new@15',
    ]);
    expect(informer.list()).toHaveLength(4);
  });

  test('an informer logs the error of a listener that throws, and calls the other listeners', async () => {
    const { cluster, informer, changes } = await lab();
    informer.onChange(() => {
      throw new Error('a listener');
    });
    const late: string[] = [];
    informer.onChange((_, { metadata }) => late.push(metadata.name));
    await cluster.list([configMap('a', '5')], '10');
    expect(changes).toEqual(['ADDED a@5']);
    expect(late).toEqual(['a']);
  });

  test('waiting for an informer to sync ends when the signal of the caller is aborted', async () => {
    const { informer } = await lab();
    const late = AbortSignal.abort(new Error('too late'));
    await expect(informer.waitForSync(late)).rejects.toThrow('too late');
    const controller = new AbortController();
    const waiting = informer.waitForSync(controller.signal);
    controller.abort(new Error('the client went away'));
    await expect(waiting).rejects.toThrow('the client went away');
  });
});
