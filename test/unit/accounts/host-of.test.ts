import { expect, test } from '@jest/globals';
import { addressKeys, hostOf } from '../../../src/accounts/host-of.ts';

test.each<[string, string, string[]]>([
  ['192.0.2.1', '192.0.2.1', ['address 192.0.2.1']],
  ['', '', ['address ']],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2', ['address 2001:db8:1:2', 'network 2001:db8:1']],
  ['2001:0DB8::1', '2001:db8:0:0', ['address 2001:db8:0:0', 'network 2001:db8:0']],
  ['fe80::1%eth0', 'fe80:0:0:0', ['address fe80:0:0:0', 'network fe80:0:0']],
])('%j counts by its host, and IPv6 also by its /48', (address, host, keys) => {
  expect(hostOf(address)).toBe(host);
  expect(addressKeys(address)).toEqual(keys);
});
