import { expect, test } from '@jest/globals';
import { elementsIn } from '../../../../src/auth/authenticators/client-chain.ts';

const bytes = (hex: string, filling = 0): Buffer => Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(filling)]);

test.each<[string, Buffer, [tag: number, length: number][]]>([
  ['no bytes', bytes(''), []],
  ['an empty element', bytes('0500'), [[5, 0]]],
  [
    'two elements',
    bytes('0101ff020105'),
    [
      [1, 1],
      [2, 1],
    ],
  ],
  ['the maximum length in short form', bytes('047f', 127), [[4, 127]]],
  ['a length of one octet', bytes('048180', 128), [[4, 128]]],
  ['a length of two octets', bytes('04820100', 256), [[4, 256]]],
])('DER with %s is parsed', (_, der, expected) => {
  expect(elementsIn(der).map(({ tag, content }) => [tag, content.length])).toEqual(expected);
});

test.each<[string, Buffer]>([
  ['a tag without a length', bytes('04')],
  ['an indefinite length', bytes('3080', 200)],
  ['content that ends early', bytes('0403', 2)],
  ['a second element that ends early', bytes('05000401')],
  ['a long length that ends early', bytes('048201')],
  ['a length of 2^64 - 1 bytes', bytes('0488ffffffffffffffff', 16)],
])('DER with %s is rejected', (_, der) => {
  expect(() => elementsIn(der)).toThrow(/./);
});
