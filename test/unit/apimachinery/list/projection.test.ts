import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { parseFields, project, projected } from '../../../../src/apimachinery/list/projection.ts';
import { nodes } from '../../../../src/resources/kinds/nodes.ts';
import { coreView } from '../../../../src/apimachinery/list/views.ts';

const cut = (value: unknown, fields: string): unknown =>
  JSON.parse((project(Buffer.from(JSON.stringify(value)), parseFields(fields)) ?? 'null').toString());

const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'a', uid: 'u', labels: { 'kubernetes.io/arch': 'arm64', 'x,y': '1', zone: 'b' } },
  spec: { taints: [{ key: 'k', effect: 'NoSchedule' }, { key: 'l' }] },
  status: {
    phase: 'Running',
    addresses: [
      { type: 'IP', address: '1' },
      { type: 'DNS', address: '2' },
    ],
    matrix: [[{ a: 1, b: 2 }]],
  },
  'a<b': { '"\\': 1 },
};
const identity = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } };

describe('the projection of an object', () => {
  test.each<[string, object]>([
    ['metadata.name', identity],
    ['.kind', identity],
    ['spec', { ...identity, spec: node.spec }],
    ['.spec.taints,spec.taints.key', { ...identity, spec: node.spec }],
    ['spec.taints.key,spec.taints', { ...identity, spec: node.spec }],
    ['spec.taints.effect', { ...identity, spec: { taints: [{ effect: 'NoSchedule' }, {}] } }],
    ['status.addresses.1', { ...identity, status: { addresses: [{ type: 'DNS', address: '2' }] } }],
    ['status.addresses.1.type', { ...identity, status: { addresses: [{ type: 'DNS' }] } }],
    [
      'status.addresses.0,status.addresses.type',
      { ...identity, status: { addresses: [{ type: 'IP', address: '1' }, { type: 'DNS' }] } },
    ],
    ['status.matrix.a', { ...identity, status: { matrix: [[{ a: 1 }]] } }],
    [
      'metadata.labels.kubernetes\\.io/arch',
      { ...identity, metadata: { name: 'a', labels: { 'kubernetes.io/arch': 'arm64' } } },
    ],
    ['metadata.labels.x\\,y', { ...identity, metadata: { name: 'a', labels: { 'x,y': '1' } } }],
    ['metadata', { ...identity, metadata: node.metadata }],
    ['nothing', identity],
    ['status.phase.deeper', { ...identity, status: {} }],
    ['__proto__', identity],
    [String.raw`a<b.\"\\`, { ...identity, 'a<b': { '"\\': 1 } }],
  ])('the projection of an object to the fields %s keeps only these and the identifying fields', (fields, expected) => {
    expect(cut(node, fields)).toEqual(expected);
  });

  test('the projection of an object contains only members of the object, in the same order', () => {
    const key = fc.constantFrom('a', 'b', 'c', '0', '1', '2');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.integer(), fc.string(), fc.constant(null), tie('object'), tie('array')),
      object: fc.dictionary(key, tie('value')),
      array: fc.array(tie('value'), { maxLength: 4 }),
    }));
    const paths = fc.array(fc.array(key, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.dictionary(key, value), paths, (object, fieldPaths) => {
        expect(JSON.stringify(cut(object, fieldPaths.map((path) => path.join('.')).join(',')))).toBe(
          JSON.stringify(naive(object, fieldPaths)),
        );
      }),
    );
  });
});

/** Simple implementation of the projection, which works on decoded values. */
function naive(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.length === 0) return undefined;
  if (paths.some((path) => path.length === 0)) return value;
  const below = (key: string): string[][] => paths.filter(([first]) => first === key).map((path) => path.slice(1));
  if (Array.isArray(value)) {
    const named = paths.every(([first = '']) => /^\d+$/.test(first)) ? [] : paths;
    const parts = value.map((element, index) => {
      const own = below(String(index));
      return naive(element, own.length > 0 ? own : named);
    });
    return parts.filter((part) => part !== undefined);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const parts = Object.entries(value).map(([key, member]): [string, unknown] => {
    const own = below(key);
    return [key, own.length > 0 ? naive(member, own) : undefined];
  });
  return Object.fromEntries(parts.filter(([, member]) => member !== undefined));
}

test.each([
  '',
  ',',
  'spec,',
  '.',
  'spec..taints',
  'a[0]',
  'a]',
  'a."b"',
  Array(65).fill('spec').join(','),
  Array(3_000).fill('a').join('.'),
])('the field path %j is rejected', (fields) => {
  expect(() => parseFields(fields)).toThrow(expect.objectContaining({ code: 400 }));
});

test('the `origin` of a projected view depends only on the selected fields, not on their notation', () => {
  const view = coreView(nodes, false);
  const origin = (fields: string): unknown => projected(view, parseFields(fields)).origin;
  const fieldPaths = [
    'spec,status.phase',
    'status',
    'spec',
    'status.0',
    'metadata.labels.a\\.b',
    'metadata.labels.a.b',
  ];
  expect(new Set(fieldPaths.map((fields) => JSON.stringify(origin(fields)))).size).toBe(fieldPaths.length);
  expect(origin('status.phase,.spec,metadata.name')).toEqual(origin('spec,status.phase'));
  expect(origin('spec')).toMatchObject({ view });
});
