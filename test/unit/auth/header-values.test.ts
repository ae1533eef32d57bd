import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { headerValues } from '../../../src/auth/identity-headers.ts';

const name = fc.stringMatching(/^[A-Za-z-]{1,8}$/);
const pairs = fc.array(fc.tuple(name, fc.string({ maxLength: 8 })), { maxLength: 20 });

test('headerValues() returns all values in order, whatever the case of the header name', () => {
  fc.assert(
    fc.property(pairs, (given) => {
      const headers = headerValues({ rawHeaders: given.flat() });
      for (const [key] of given) {
        const values = given.filter(([other]) => other.toLowerCase() === key.toLowerCase()).map(([, value]) => value);
        expect(headers.get(key.toLowerCase())).toEqual(values);
      }
      expect([...headers.values()].flat()).toHaveLength(given.length);
    }),
  );
});
