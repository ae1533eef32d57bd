import { describe, expect, test } from '@jest/globals';
import { parametersOf } from '../../../src/config/hash-parameters.ts';

const salt = 'c2FsdHNhbHRzYWx0c2FsdA';
const digest = 'A'.repeat(43);
const argon2 = (costs: string): string => `$argon2id$v=19$${costs}$${salt}$${digest}`;
const bcrypt = (prefix: string): string => `${prefix}$${'a'.repeat(53)}`;

describe('the hash parameters', () => {
  test.each([
    [bcrypt('$2a$10'), 'bcrypt:10'],
    [bcrypt('$2b$12'), 'bcrypt:12'],
    [bcrypt('$2y$04'), 'bcrypt:4'],
    [bcrypt('$2b$16'), 'bcrypt:16'],
    [argon2('m=19456,t=2,p=1'), 'argon2id:19456:2:1'],
    [argon2('m=65536,t=3,p=4'), 'argon2id:65536:3:4'],
    [argon2('m=262144,t=16,p=16'), 'argon2id:262144:16:16'],
    [argon2('m=8,t=1,p=1'), 'argon2id:8:1:1'],
  ])('the hash parameters of %s are %s', (hash, parameters) => {
    expect(parametersOf(hash)).toBe(parameters);
  });

  test.each([
    ['an empty string', ''],
    ['a password', 'correct horse battery staple'],
    ['bcrypt of an unknown version', bcrypt('$2x$10')],
    ['bcrypt that is truncated', bcrypt('$2b$10').slice(0, -1)],
    ['bcrypt with trailing text', `${bcrypt('$2b$10')}a`],
    ['bcrypt with a line end', `${bcrypt('$2b$10')}\n`],
    ['bcrypt with a character outside its base64 alphabet', bcrypt('$2b$10').replace('aa', 'a=')],
    ['bcrypt with a cost below the minimum of bcrypt', bcrypt('$2b$03')],
    ['bcrypt with a cost that takes seconds', bcrypt('$2b$17')],
    ['bcrypt with a cost that takes hours', bcrypt('$2b$31')],
    ['bcrypt without a cost', bcrypt('$2b$')],
    ['argon2i', argon2('m=19456,t=2,p=1').replace('argon2id', 'argon2i')],
    ['argon2d', argon2('m=19456,t=2,p=1').replace('argon2id', 'argon2d')],
    ['argon2id of another version', argon2('m=19456,t=2,p=1').replace('v=19', 'v=16')],
    ['argon2id with more than 256 MiB of memory', argon2('m=262145,t=1,p=1')],
    ['argon2id with 4 TiB of memory', argon2('m=4294967295,t=1,p=1')],
    ['argon2id with too many passes', argon2('m=19456,t=17,p=1')],
    ['argon2id without passes', argon2('m=19456,t=0,p=1')],
    ['argon2id without lanes', argon2('m=19456,t=2,p=0')],
    ['argon2id with too many lanes', argon2('m=19456,t=2,p=17')],
    ['argon2id with less memory than its lanes need', argon2('m=31,t=2,p=4')],
    ['argon2id with a short salt', argon2('m=19456,t=2,p=1').replace(salt, 'c2FsdA')],
    ['argon2id with a short digest', argon2('m=19456,t=2,p=1').replace(digest, 'A'.repeat(20))],
    ['argon2id with a digest that is not base64', argon2('m=19456,t=2,p=1').replace(digest, 'A'.repeat(41))],
    ['argon2id with a long digest', argon2('m=19456,t=2,p=1').replace(digest, 'A'.repeat(88))],
    ['argon2id with its parameters in another order', argon2('t=2,m=19456,p=1')],
    ['argon2id without a digest', argon2('m=19456,t=2,p=1').replace(digest, '')],
    ['scrypt', '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E'],
  ])('hash parameters are rejected for %s', (_what, hash) => {
    expect(parametersOf(hash)).toBeUndefined();
  });
});
