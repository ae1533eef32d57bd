import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { Packer } from '../../../../src/cluster/cache/packed.ts';

const sixtyFields = (n: number): Buffer =>
  Buffer.from(JSON.stringify(Array.from({ length: 60 }, (_, i) => ({ [`f:field-${i}`]: i === 7 ? n : {} }))));

const anyBytes = fc
  .oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.uint8Array({ minLength: 5_000, maxLength: 6_000 }),
    fc.nat(50).map((n) => Buffer.from(`{"a":"${'like the others '.repeat(n)}"}`)),
  )
  .map((array) => Buffer.from(array));

describe('packed text', () => {
  test('packed text is restored exactly, however much it differs from previously packed texts', () => {
    const packer = new Packer();
    fc.assert(fc.property(anyBytes, (bytes) => expect(packer.pack(bytes).bytes.equals(bytes)).toBe(true)));
  });

  test('packed text is small if it resembles the previous text', () => {
    const packer = new Packer();
    packer.pack(sixtyFields(1));
    expect(packer.pack(sixtyFields(2)).size).toBeLessThan(sixtyFields(2).length / 5);
  });
});

interface Written {
  readonly time: string;
  readonly ip: string;
  readonly uid: string;
  readonly field: string;
}

/** Formatted as kube-apiserver writes the managedFields of a pod. */
const managedFields = ({ time, ip, uid, field }: Written): Buffer => {
  const fieldsV1 = {
    'f:metadata': { 'f:ownerReferences': { '.': {}, [`k:{"uid":${JSON.stringify(uid)}}`]: {} } },
    'f:status': {
      'f:podIPs': { '.': {}, [`k:{"ip":${JSON.stringify(ip)}}`]: { '.': {}, 'f:ip': {} } },
      [`f:${field}`]: {},
    },
  };
  const entry = { manager: 'kubelet', operation: 'Update', apiVersion: 'v1', time, fieldsType: 'FieldsV1', fieldsV1 };
  return Buffer.from(`,"managedFields":${JSON.stringify([entry, { ...entry, time: `${time}2` }])}`);
};

const ofOneMake = (index: number): Buffer =>
  managedFields({ time: '2026-01-01T00:00:00Z', ip: `10.0.0.${index}`, uid: `uid-${index}`, field: 'phase' });
const withUniqueField = (index: number): Buffer =>
  managedFields({ time: '', ip: '', uid: '', field: `only-here-${'x'.repeat(300)}-${index}` });

describe('packed managedFields', () => {
  test('packed managedFields are restored exactly, whatever they contain', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('', '\0', '"', '\\', '"time":"x"', '10.0.0.1'),
    );
    const written = fc.record({ time: text, ip: text, uid: text, field: fc.constantFrom('conditions', 'phase') });
    const kept = new ManagedFields();
    fc.assert(
      fc.property(fc.oneof(written.map(managedFields), anyBytes), (bytes) => {
        for (let time = 0; time < 3; time += 1) {
          const packed = kept.pack(bytes);
          expect(packed.bytes.equals(bytes)).toBe(true);
          expect(packed.length).toBe(bytes.length);
        }
      }),
    );
  });

  test('packed managedFields of similar objects store only the differences', () => {
    const kept = new ManagedFields();
    kept.pack(ofOneMake(0));
    for (let index = 1; index < 10; index += 1) {
      const packed = kept.pack(ofOneMake(index));
      expect(packed.size).toBeLessThan(80);
      expect(packed.bytes.toString()).toBe(ofOneMake(index).toString());
    }
  });

  test('packed managedFields without a similar entry are packed individually', () => {
    const kept = new ManagedFields();
    kept.pack(withUniqueField(0));
    expect(kept.pack(withUniqueField(1)).size).toBeLessThan(withUniqueField(1).length / 2);
    expect(kept.pack(withUniqueField(1)).size).toBeLessThan(20);
  });

  test('packed managedFields of similar objects store only the differences, even after the managedFields of 2,000 other objects', () => {
    const kept = new ManagedFields();
    for (let index = 0; index < 2; index += 1) kept.pack(ofOneMake(index));
    const { size } = kept.pack(ofOneMake(3));
    for (let index = 0; index < 2_000; index += 1) {
      kept.pack(withUniqueField(1_000 + index));
      if (index % 500 === 0) kept.pack(ofOneMake(index));
    }
    // The templates of other objects are more recent.
    for (let index = 0; index < 10; index += 1) kept.pack(withUniqueField(index % 5));
    expect(kept.pack(ofOneMake(3)).size).toBe(size);
  });

  test('packed managedFields count all templates in memory, including those that only existing objects use', () => {
    const kept = new ManagedFields();
    let unpacked = 0;
    const all = Array.from({ length: 100 }, (_, index) => {
      const bytes = managedFields({ time: '', ip: '', uid: '', field: `${index}`.repeat(10_000) });
      unpacked += bytes.length;
      kept.pack(bytes);
      return kept.pack(bytes);
    });
    expect(kept.bytes).toBeGreaterThan(2 * 1024 * 1024);
    expect(kept.bytes).toBeGreaterThan(0.9 * unpacked);
    expect(all.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(10_000);
  });

  test.each([
    ['100 addresses', String.raw`k:{\"ip\":\"10.0.0.1\"}`.repeat(100)],
    ['more than 64 KiB', 'x'.repeat(65 * 1024)],
  ])('packed managedFields with %s use no template', (_, field) => {
    const kept = new ManagedFields();
    const text = Buffer.from(`,"managedFields":[{"${field}":{}}]`);
    for (let time = 0; time < 3; time += 1) expect(kept.pack(text).bytes.equals(text)).toBe(true);
    expect(kept.bytes).toBe(0);
  });
});
