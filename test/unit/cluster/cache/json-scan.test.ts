import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  decodeObject,
  elementsOf,
  MalformedResponseError,
  membersOf,
  membersOfObject,
  skipValue,
  valueOf,
} from '../../../../src/cluster/cache/json-scan.ts';
import { parseWatchEvent, splitList } from '../../../../src/cluster/cache/kube-responses.ts';

/** Returns the value as JSON with and without white space. */
const texts = (value: unknown): Buffer[] => [
  Buffer.from(JSON.stringify(value)),
  Buffer.from(JSON.stringify(value, null, 2)),
];

describe('scanning JSON', () => {
  test('scanning JSON finds every member of any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        for (const text of texts(object)) {
          const members = membersOf(text, 0);
          const found = members.map(({ start, end }) => JSON.parse(`{${text.toString('utf8', start, end)}}`) as object);
          expect(Object.fromEntries(found.flatMap((one) => Object.entries(one)))).toEqual(JSON.parse(text.toString()));
          expect(members.map(({ key }) => key).toSorted()).toEqual(Object.keys(object).toSorted());
          expect(skipValue(text, 0)).toBe(text.length);
        }
      }),
    );
  });

  test('scanning JSON finds every element of any array', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (array) => {
        for (const text of texts(array))
          expect(elementsOf(text, 0).map((element) => JSON.parse(element.toString()) as unknown)).toEqual(
            JSON.parse(text.toString()),
          );
      }),
    );
  });

  test('scanning JSON finds the value of any key, starting at any position', () => {
    const keys = fc.oneof(fc.string(), fc.constantFrom('a', 'ab', '<', '<a>', 'ä', '"', '\\'));
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue()), keys, (object, absent) => {
        for (const written of texts(object)) {
          const text = Buffer.from(written.toString().replaceAll('<', String.raw`\u003c`));
          const members = membersOf(text, 0);
          for (const key of [absent, ...Object.keys(object)]) {
            const at = members.find((one) => one.key === key);
            expect(valueOf(text, 0, Buffer.from(key))).toBe(at?.value);
            for (const { start, end } of members)
              expect(valueOf(text, end, Buffer.from(key))).toBe(
                at !== undefined && at.start > start ? at.value : undefined,
              );
          }
        }
      }),
    );
  });

  test('scanning JSON stops after the requested member', () => {
    expect(membersOf(Buffer.from('{"a":1,"b":2,"c"'), 0, 'b').map(({ key }) => key)).toEqual(['a', 'b']);
  });

  test.each(['{"a":"', '{"a":{', '{"a":}', '{"a"', '{a:1}', '[1]', ''])('scanning JSON rejects %j', (text) => {
    expect(() => membersOf(Buffer.from(text), 0)).toThrow(MalformedResponseError);
  });
});

const decodeText = (text: string, unreadStatus?: string): unknown =>
  decodeObject(Buffer.from(text), membersOfObject(Buffer.from(text)), unreadStatus);
const decode = (value: unknown, unreadStatus?: string): unknown => decodeText(JSON.stringify(value), unreadStatus);

describe('an object is decoded without managedFields', () => {
  const managedFields = [{ manager: 'kubelet', fieldsV1: { 'f:metadata': { 'k:{"a":"]},"}': {} } } }];
  const metadata = { name: 'n', labels: { managedFields: '[]' }, annotations: { a: '"managedFields":[' } };

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['that are last in the metadata', { ...metadata, managedFields }, metadata],
    ['that are first in the metadata', { managedFields, ...metadata }, metadata],
    ['that are the only member', { managedFields }, {}],
    ['if the metadata contains none', metadata, metadata],
    ['that are in the middle of the metadata', { name: 'ä', managedFields, uid: 'ü' }, { name: 'ä', uid: 'ü' }],
  ])('an object is decoded without managedFields %s', (_, written, read) => {
    const spec = { managedFields, template: { metadata: { managedFields } } };
    expect(decode({ kind: 'Node', metadata: written, spec })).toEqual({ kind: 'Node', metadata: read, spec });
    expect(
      parseWatchEvent(Buffer.from(JSON.stringify({ type: 'ADDED', object: { metadata: written, spec } }))),
    ).toEqual(expect.objectContaining({ type: 'ADDED', object: { metadata: read, spec } }));
  });

  test.each([['{}'], ['{"metadata":null}'], ['{"metadata":{}}']])(
    'an object is decoded without managedFields from %s',
    (text) => {
      expect(decodeText(text)).toEqual(JSON.parse(text));
    },
  );
});

describe('an object is decoded without a member of its status', () => {
  const metadata = { managedFields: [{}], name: 'n' };
  const images = [{ names: ['a,"}]'], sizeBytes: 1 }];

  test.each<[string, object, object]>([
    ['that is first', { images, phase: 'x' }, { phase: 'x' }],
    ['that is last', { phase: 'x', images }, { phase: 'x' }],
    ['that is the only member', { images }, {}],
    ['if there is none', { phase: { images } }, { phase: { images } }],
  ])('an object is decoded without a member of its status %s', (_, written, read) => {
    const spec = { images, status: { images } };
    for (const object of [
      { metadata, spec, status: written },
      { status: written, spec, metadata },
    ])
      for (const text of texts(object))
        expect(decodeText(text.toString(), 'images')).toEqual({ metadata: { name: 'n' }, spec, status: read });
  });
});

describe('a watch event', () => {
  const object = { kind: 'Node', metadata: { name: 'ä', resourceVersion: '7' } };
  const compact = JSON.stringify(object);

  test.each([
    [`{"type":"MODIFIED","object":${compact}}`],
    [` { "type": "MODIFIED", "object": ${compact} } `],
    [`{"object":${compact},"type":"MODIFIED"}`],
  ])('a watch event is split into its type and the bytes of its object: %s', (line) => {
    const event = parseWatchEvent(Buffer.from(line.trim()));
    expect(event).toMatchObject({ type: 'MODIFIED', object });
    expect(event.bytes.toString()).toBe(compact);
  });

  test.each(['{"type":"ADDED"}', '{"object":{}}', '{"type":"ADDED","object":[]}', '[]'])(
    'a watch event is rejected: %s',
    (line) => {
      expect(() => parseWatchEvent(Buffer.from(line))).toThrow(MalformedResponseError);
    },
  );
});

describe('a list response', () => {
  test('a list response is split into items, whatever the order of its keys', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ metadata: fc.dictionary(fc.string(), fc.jsonValue()) })), (items) => {
        const typed = { kind: 'NodeList', apiVersion: 'v1', metadata: { resourceVersion: '7', continue: 'x' }, items };
        const custom = Object.fromEntries(Object.entries(typed).toSorted(([a], [b]) => (a < b ? -1 : 1)));
        for (const text of [...texts(typed), ...texts(custom)]) {
          const list = splitList(text);
          expect(list).toMatchObject({ kind: 'Node', apiVersion: 'v1', metadata: typed.metadata });
          expect(list.items.map(({ bytes }) => JSON.parse(bytes.toString()) as unknown)).toEqual(
            JSON.parse(JSON.stringify(items)),
          );
          for (const { bytes, members } of list.items) expect(members).toEqual(membersOfObject(bytes));
        }
      }),
    );
  });

  test('a response that is not a list is rejected', () => {
    expect(() => splitList(Buffer.from('{"kind":"Status"}'))).toThrow('the response is not a list');
    for (const items of ['[1]', '[{}', '[{},null]'])
      expect(() => splitList(Buffer.from(`{"kind":"NodeList","apiVersion":"v1","items":${items}}`))).toThrow(
        MalformedResponseError,
      );
  });
});
