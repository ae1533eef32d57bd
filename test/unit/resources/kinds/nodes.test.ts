import { describe, expect, test } from '@jest/globals';
import { humanDuration, nodes } from '../../../../src/resources/kinds/nodes.ts';
import { node } from '../../../labs/resources.ts';

const ready = (status: string): object => ({ type: 'Ready', status });
const now = 1_700_000_000_000 + 3 * 86_400_000;

describe('the table cells of a node', () => {
  test('the table cells of a node equal those of kube-apiserver', () => {
    const full = node('a', {
      labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/': '', 'kubernetes.io/role': 'edge' },
      unschedulable: true,
      status: {
        conditions: [ready('True')],
        addresses: [
          { type: 'Hostname', address: 'a' },
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'InternalIP', address: '10.0.0.2' },
          { type: 'ExternalIP', address: '192.0.2.1' },
        ],
        nodeInfo: {
          kubeletVersion: 'v1.36.3',
          osImage: 'Debian',
          kernelVersion: '6.1',
          architecture: 'amd64',
          containerRuntimeVersion: 'containerd://2',
        },
      },
    });
    expect(nodes.cells(full, now)).toEqual([
      'a',
      'Ready,SchedulingDisabled',
      'edge,worker',
      '3d',
      'v1.36.3',
      '10.0.0.1',
      '192.0.2.1',
      'Debian',
      '6.1 (amd64)',
      'containerd://2',
    ]);
  });

  test('the table cells of a node without a status show unknown values', () => {
    expect(nodes.cells(node('a'), now)).toEqual([
      'a',
      'Unknown',
      '<none>',
      '3d',
      '',
      '<none>',
      '<none>',
      '<unknown>',
      '<unknown>',
      '<unknown>',
    ]);
    expect(nodes.columns).toHaveLength(10);
  });

  test.each([
    ['True', 'Ready'],
    ['False', 'NotReady'],
    ['Unknown', 'NotReady'],
  ])('the table cells of a node with the condition Ready=%s show %s', (status, cell) => {
    expect(nodes.cells(node('a', { status: { conditions: [ready(status)] } }), now)[1]).toBe(cell);
  });
});

test.each([
  [[], false, 'running'],
  [[ready('True')], false, 'running'],
  [[ready('False')], false, 'warning'],
  [[ready('Unknown')], false, 'warning'],
  [[ready('True'), { type: 'MemoryPressure', status: 'True' }], false, 'warning'],
  [[ready('True'), { type: 'NetworkUnavailable', status: 'Unknown' }], false, 'warning'],
  [[ready('True'), { type: 'SomethingElse', status: 'True' }], false, 'running'],
  [[ready('True')], true, 'unschedulable'],
  [[ready('False')], true, ['warning', 'unschedulable']],
  [[ready('True'), { type: 'MemoryPressure', status: 'True' }], true, ['warning', 'unschedulable']],
])(
  'the status of a node with the conditions %j and spec.unschedulable=%s is %s',
  (conditions, unschedulable, status) => {
    expect(nodes.statusOf(node('a', { unschedulable, status: { conditions } }))).toEqual(status);
  },
);

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

test.each([
  [-2, '<invalid>'],
  [-1, '0s'],
  [0, '0s'],
  [119, '119s'],
  [120, '2m'],
  [9 * minute + 59, '9m59s'],
  [10 * minute + 59, '10m'],
  [179 * minute, '179m'],
  [3 * hour, '3h'],
  [7 * hour + 59 * minute, '7h59m'],
  [8 * hour + 59 * minute, '8h'],
  [47 * hour, '47h'],
  [48 * hour, '2d'],
  [7 * day + 23 * hour, '7d23h'],
  [8 * day + 23 * hour, '8d'],
  [729 * day, '729d'],
  [730 * day, '2y'],
  [731 * day, '2y1d'],
  [8 * 365 * day + day, '8y'],
])('an age of %i s is shown as %s in a table', (seconds, text) => {
  expect(humanDuration(seconds * 1000)).toBe(text);
});
