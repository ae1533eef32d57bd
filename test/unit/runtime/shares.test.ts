import { expect, test } from '@jest/globals';
import { addressKeys, hostOf } from '../../../src/runtime/shares.ts';

test.each<[string, string, string[]]>([
  ['192.0.2.1', '192.0.2.1', ['address 192.0.2.1']],
  ['', '', ['address ']],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2', ['address 2001:db8:1:2', 'network 2001:db8:1']],
  ['2001:0DB8::1', '2001:db8:0:0', ['address 2001:db8:0:0', 'network 2001:db8:0']],
  ['2001:db8:1:2::', '2001:db8:1:2', ['address 2001:db8:1:2', 'network 2001:db8:1']],
  ['::', '0:0:0:0', ['address 0:0:0:0', 'network 0:0:0']],
  ['1::2:3:4:5:6:7', '1:0:2:3', ['address 1:0:2:3', 'network 1:0:2']],
  ['::2:3:4:5:6:7:8', '0:2:3:4', ['address 0:2:3:4', 'network 0:2:3']],
  ['1:2::6:7:8', '1:2:0:0', ['address 1:2:0:0', 'network 1:2:0']],
  ['1:2:3::%25', '1:2:3:0', ['address 1:2:3:0', 'network 1:2:3']],
  ['fe80::1%a:b:c:d:e:f', 'fe80:0:0:0', ['address fe80:0:0:0', 'network fe80:0:0']],
  ['fe80::1%eth0', 'fe80:0:0:0', ['address fe80:0:0:0', 'network fe80:0:0']],
])(
  'requests from the address %j count towards the share of its host, and for IPv6 also of its /48',
  (address, host, keys) => {
    expect(hostOf(address)).toBe(host);
    expect(addressKeys(address)).toEqual(keys);
  },
);
