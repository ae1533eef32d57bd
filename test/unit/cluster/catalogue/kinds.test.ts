import { describe, expect, test } from '@jest/globals';
import { genericDefinition } from '../../../../src/cluster/catalogue/generic.ts';
import type { Kind } from '../../../../src/cluster/catalogue/resource.ts';
import { kinds } from '../../../../src/resources/kinds/index.ts';
import type { DiscoveredResource } from '../../../../src/cluster/discovery.ts';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';

function kind(resource: string): Kind<unknown> {
  const found = kinds.find((candidate) => candidate.resource === resource);
  if (found === undefined) throw new Error(`${resource} has nothing of its own`);
  return found;
}

/** An object with these fields. `metadata` is merged into the default metadata. */
function stored(of: Kind<unknown>, { metadata = {}, ...rest }: { metadata?: object }): StoredObject<unknown> {
  const object = {
    kind: 'Kind',
    apiVersion: 'v1',
    metadata: { name: 'a', resourceVersion: '1', ...metadata },
    ...rest,
  } as KubeObject;
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: () => '/a',
    fields: (decoded) => of.fields(decoded),
    managedFields: new ManagedFields(),
  });
}

const waiting = (reason: string): object => ({ state: { waiting: { reason } } });
const terminated = (exitCode: number): object => ({ state: { terminated: { exitCode } } });
const running = { state: { running: {} } };
const condition = (type: string, status: string): object => ({ status: { conditions: [{ type, status }] } });
const scaled = (replicas: number | undefined, present: number, readyReplicas: number): object => ({
  spec: { replicas },
  status: { replicas: present, readyReplicas },
});

describe('the derived status', () => {
  test.each<[string, object, string]>([
    ['pods', {}, 'Waiting'],
    ['pods', { status: { phase: 'Pending' } }, 'Waiting'],
    ['pods', { status: { phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] } }, 'Waiting'],
    ['pods', { status: { phase: 'Pending', initContainerStatuses: [waiting('PodInitializing')] } }, 'Waiting'],
    ['pods', { status: { phase: 'Pending', containerStatuses: [waiting('ErrImagePull')] } }, 'Error'],
    ['pods', { status: { phase: 'Pending', initContainerStatuses: [terminated(1)] } }, 'Error'],
    ['pods', { status: { phase: 'Running', initContainerStatuses: [terminated(0)] } }, 'Running'],
    ['pods', { status: { phase: 'Running', containerStatuses: [running] } }, 'Running'],
    ['pods', { status: { phase: 'Running', containerStatuses: [running, waiting('CrashLoopBackOff')] } }, 'Error'],
    ['pods', { status: { phase: 'Failed' } }, 'Error'],
    ['pods', { status: { phase: 'Unknown' } }, 'Error'],
    ['pods', { status: { phase: 'Succeeded', containerStatuses: [terminated(0)] } }, 'Completed'],
    ['deployments', scaled(0, 0, 0), 'stopped'],
    ['deployments', scaled(2, 2, 2), 'running'],
    ['deployments', scaled(2, 2, 1), 'updating'],
    ['deployments', scaled(2, 0, 0), 'updating'],
    ['deployments', scaled(0, 2, 2), 'running'],
    ['deployments', {}, 'updating'],
    ['statefulsets', scaled(3, 3, 3), 'running'],
    ['statefulsets', scaled(undefined, 1, 1), 'running'],
    ['daemonsets', { status: { desiredNumberScheduled: 3, numberReady: 3 } }, 'running'],
    ['daemonsets', { status: { desiredNumberScheduled: 3, numberReady: 2 } }, 'updating'],
    ['daemonsets', { status: { desiredNumberScheduled: 0, numberReady: 0 } }, 'stopped'],
    ['daemonsets', {}, 'stopped'],
    ['jobs', {}, 'running'],
    ['jobs', condition('Complete', 'True'), 'completed'],
    ['jobs', condition('Complete', 'False'), 'running'],
    ['jobs', condition('Failed', 'True'), 'failed'],
    ['jobs', condition('Suspended', 'True'), 'running'],
    ['persistentvolumeclaims', {}, 'pending'],
    ['persistentvolumeclaims', { status: { phase: 'Bound' } }, 'bound'],
    ['persistentvolumes', { status: { phase: 'Released' } }, 'released'],
    ['namespaces', {}, 'active'],
    ['namespaces', { status: { phase: 'Terminating' } }, 'terminating'],
    ['volumesnapshots', {}, 'creating'],
    ['volumesnapshots', { status: { readyToUse: true } }, 'ready'],
    ['volumesnapshots', { metadata: { deletionTimestamp: 'now' }, status: { readyToUse: true } }, 'deleting'],
  ])('the derived status of %s with %j is %s', (resource, object, expected) => {
    const of = kind(resource);
    expect(of.statusOf(stored(of, object))).toBe(expected);
    expect(of.statuses).toContain(expected);
  });
});

describe('the filter parameter', () => {
  test.each<[string, string, object, string, string]>([
    ['pods', 'nodeName', { spec: { nodeName: 'n1' } }, 'n1', 'n'],
    ['pods', 'phase', { status: { phase: 'Running' } }, 'Running', 'Pending'],
    ['pods', 'pvcName', { spec: { volumes: [{}, { persistentVolumeClaim: { claimName: 'c' } }] } }, 'c', 'd'],
    ['persistentvolumeclaims', 'storageClassName', { spec: { storageClassName: 'fast' } }, 'fast', 'slow'],
    ['persistentvolumes', 'storageClassName', { spec: { storageClassName: 'fast' } }, 'fast', ''],
    ['secrets', 'type', { type: 'kubernetes.io/tls' }, 'kubernetes.io/tls', 'Opaque'],
    ['secrets', 'type', {}, 'Opaque', ''],
    ['volumesnapshots', 'volumeSnapshotClassName', { spec: { volumeSnapshotClassName: 'v' } }, 'v', 'w'],
    ['volumesnapshots', 'persistentVolumeClaimName', { spec: { source: { persistentVolumeClaimName: 'c' } } }, 'c', ''],
  ])(
    'the filter parameter of %s matches only objects with the requested value of %s',
    (resource, name, object, right, wrong) => {
      const of = kind(resource);
      const one = stored(of, object);
      expect(of.filters[name]?.matches(one, right)).toBe(true);
      expect(of.filters[name]?.matches(one, wrong)).toBe(false);
    },
  );
});

const served = (group: string, resource: string): DiscoveredResource => ({
  group,
  version: 'v7',
  resource,
  singular: 'one',
  shortNames: [],
  kind: 'Kind',
  namespaced: true,
  verbs: [],
  revision: '',
});

test('the filters of a kind depend on its group and plural name, whatever version is served', () => {
  expect(genericDefinition(served('apps', 'deployments'), kinds)).toMatchObject({
    kind: 'Kind',
    underlying: { group: 'apps', version: 'v7', resource: 'deployments' },
    served: { group: 'resources.platform.io', version: 'v1alpha3', resource: 'deployments' },
    statuses: ['stopped', 'running', 'updating'],
  });
  expect(genericDefinition(served('x.example.com', 'deployments'), kinds)).toMatchObject({ statuses: [], filters: {} });
});
