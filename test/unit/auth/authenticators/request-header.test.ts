import { afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Request } from 'express';
import { X509Certificate } from 'node:crypto';
import { createAuthority } from '../../../../hack/cluster/pki.ts';
import { requestHeader } from '../../../../src/auth/authenticators/request-header.ts';
import {
  readRequestHeaderConfig,
  type RequestHeaderConfig,
} from '../../../../src/auth/authenticators/request-header-config.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';

const day = 86_400_000;

/** Certificates that all tests share, since creating a certificate takes longer than verifying it. */
const made: Record<'trusted' | 'proxy' | 'other' | 'server' | 'foreign' | 'injected' | 'twoNames', string> = {
  trusted: '',
  proxy: '',
  other: '',
  server: '',
  foreign: '',
  injected: '',
  twoNames: '',
};
const certificate = (name: keyof typeof made): X509Certificate => new X509Certificate(made[name]);

beforeAll(async () => {
  const [trusted, stranger] = await Promise.all([createAuthority('front-proxy-ca'), createAuthority('front-proxy-ca')]);
  made.trusted = trusted.certificate;
  made.proxy = (await trusted.issue({ commonName: 'front-proxy-client' })).certificate;
  made.other = (await trusted.issue({ commonName: 'somebody-else' })).certificate;
  made.server = (await trusted.issue({ commonName: 'front-proxy-client', server: ['localhost'] })).certificate;
  made.foreign = (await stranger.issue({ commonName: 'front-proxy-client' })).certificate;
  made.twoNames = (await trusted.issue({ commonName: 'front-proxy-client, CN=somebody-else' })).certificate;
  made.injected = (
    await trusted.issue({ commonName: 'somebody-else', organization: 'x\\0ACN=front-proxy-client' })
  ).certificate;
});

const configured = (data: Readonly<Record<string, string>> = {}): RequestHeaderConfig =>
  readRequestHeaderConfig({
    'requestheader-client-ca-file': made.trusted,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    ...data,
  });

interface Attempt {
  readonly headers?: readonly (readonly [string, string])[];
  readonly shows?: keyof typeof made | undefined;
  readonly config?: RequestHeaderConfig | undefined;
}

const alice = [['X-Remote-User', 'alice']] as const;

const requestOf = (headers: readonly (readonly [string, string])[], shows?: keyof typeof made): Request =>
  ({
    rawHeaders: headers.flat(),
    socket: { getPeerX509Certificate: () => (shows === undefined ? undefined : certificate(shows)) },
  }) as unknown as Request;

function identify(attempt: Attempt): UserInfo | undefined {
  const { headers = alice } = attempt;
  const shows = 'shows' in attempt ? attempt.shows : 'proxy';
  const config = 'config' in attempt ? attempt.config : configured();
  return requestHeader(() => config)(requestOf(headers, shows));
}

describe('the request headers are trusted', () => {
  test('the request headers are trusted from the aggregator, and the user also gets the group system:authenticated', () => {
    const headers = [
      ['x-remote-user', 'alice'],
      ['X-Remote-Uid', '42'],
      ['X-Remote-Group', 'a'],
      ['X-REMOTE-GROUP', 'b,c'],
      ['X-Remote-Groups', 'd'],
    ] as const;
    expect(identify({ headers })).toEqual({
      username: 'alice',
      uid: '42',
      groups: ['a', 'b,c', 'system:authenticated'],
      via: 'request-header',
    });
  });

  test('the request headers are trusted under the configured names, with the first value of the first non-empty header', () => {
    const config = configured({
      'requestheader-username-headers': '["X-First","X-Second"]',
      'requestheader-group-headers': '["X-G","X-H"]',
    });
    const headers = [
      ['X-Remote-User', 'wrong'],
      ['X-Second', 'alice'],
      ['X-First', ''],
      ['X-First', 'not the first value'],
      ['X-H', 'h'],
      ['X-H', ''],
      ['X-G', 'g'],
    ] as const;
    expect(identify({ headers, config })).toMatchObject({
      username: 'alice',
      groups: ['g', 'h', 'system:authenticated'],
    });
  });

  test('the request headers are trusted for any certificate name when the configuration allows every name', () => {
    const config = configured({ 'requestheader-allowed-names': '[]' });
    expect(identify({ shows: 'other', config })).toMatchObject({ username: 'alice' });
  });
});

describe('extra values of the request headers', () => {
  test.each([
    ['are kept in their order', ['Scopes: a', 'Scopes: b'], { scopes: ['a', 'b'] }],
    ['have percent-decoded keys', ['Example.com%2Fkey: v'], { 'example.com/key': ['v'] }],
    ['have keys that are converted to lower case before percent-decoding', ['%C3%89T: v'], { Ét: ['v'] }],
    [
      'are all kept if they have the same key in different encodings',
      ['a%2Fb: 1', 'A%2fB: 2', '%61/b: 3'],
      { 'a/b': ['1', '2', '3'] },
    ],
    ['keep a key with a bad encoding unchanged', ['50%: v', '%ff%: w'], { '50%': ['v'], '%ff%': ['w'] }],
    ['keep a key whose encoding has only one digit unchanged', ['a%4: v', '%4z: w'], { 'a%4': ['v'], '%4z': ['w'] }],
    [
      'can have keys that are also properties of Object.prototype',
      ['__proto__: v', 'constructor: w'],
      {
        ['__proto__']: ['v'],
        constructor: ['w'],
      },
    ],
    ['can have an empty key', [': v'], { '': ['v'] }],
  ])('extra values of the request headers %s', (_, lines, extra) => {
    const headers = lines.map((line) => {
      const [key = '', value = ''] = line.split(': ');
      return [`X-Remote-Extra-${key}`, value] as const;
    });
    const user = identify({ headers: [...alice, ...headers] });
    expect(user?.extra && Object.entries(user.extra)).toEqual(extra && Object.entries(extra));
  });
});

describe('the request headers are ignored', () => {
  // evidence: request-header-ignored
  test.each<[string, () => Attempt]>([
    ['without a certificate', () => ({ shows: undefined })],
    ['with a certificate with another name', () => ({ shows: 'other' })],
    ['with a certificate for servers', () => ({ shows: 'server' })],
    ['with a certificate from another CA of the same name', () => ({ shows: 'foreign' })],
    ['with a certificate that has the name in an attribute other than its common name', () => ({ shows: 'injected' })],
    ['with a certificate that has a second name after the allowed one', () => ({ shows: 'twoNames' })],
    [
      'with the certificate of the CA itself',
      () => ({ shows: 'trusted', config: configured({ 'requestheader-allowed-names': '[]' }) }),
    ],
    ['before the configuration is read', () => ({ config: undefined })],
    ['without a user', () => ({ headers: [['X-Remote-Group', 'system:masters']] })],
    ['with an empty user', () => ({ headers: [['X-Remote-User', '']] })],
    [
      'without a configured username header',
      () => ({ config: configured({ 'requestheader-username-headers': '[]' }) }),
    ],
  ])('the request headers are ignored %s', (_, attempt) => {
    expect(identify(attempt())).toBeUndefined();
  });
});

test.each([
  ['during its validity', 0, true],
  ['before its validity', -2 * day, false],
  ['after its expiry', 3_651 * day, false],
])('a request-header certificate is accepted only while it is valid: %s', (_, shift, believed) => {
  const authenticate = requestHeader(
    () => configured(),
    () => Date.now() + shift,
  );
  expect(authenticate(requestOf(alice, 'proxy')) !== undefined).toBe(believed);
});

test('a request-header certificate that expires on an open connection is no longer accepted', () => {
  let now = Date.now();
  const config = configured();
  const authenticate = requestHeader(
    () => config,
    () => now,
  );
  const request = requestOf(alice, 'proxy');
  expect(authenticate(request)).toBeDefined();
  now += 3_651 * day;
  expect(authenticate(request)).toBeUndefined();
});

test('a request-header certificate is accepted on an open connection as soon as the certificate becomes valid', () => {
  let now = Date.now() - 2 * day;
  const config = configured();
  const authenticate = requestHeader(
    () => config,
    () => now,
  );
  const request = requestOf(alice, 'proxy');
  expect(authenticate(request)).toBeUndefined();
  now = Date.now();
  expect(authenticate(request)).toBeDefined();
});

test('a change of the request-header configuration applies to open connections', () => {
  let config = configured();
  const authenticate = requestHeader(() => config);
  const request = requestOf(alice, 'proxy');
  expect(authenticate(request)).toBeDefined();
  config = configured({ 'requestheader-allowed-names': '["another"]' });
  expect(authenticate(request)).toBeUndefined();
});

describe('the signature of the certificate of a connection', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test.each<[string, keyof typeof made, number, number]>([
    ['once if it is valid', 'proxy', 1, 60_000],
    ['again after 10 s if it is invalid', 'foreign', 2, 10_001],
  ])('the signature of the certificate of a connection is verified %s', (_, shows, times, later) => {
    const signatures = jest.spyOn(X509Certificate.prototype, 'verify');
    let now = Date.now();
    const config = configured();
    const authenticate = requestHeader(
      () => config,
      () => now,
    );
    const request = requestOf(alice, shows);
    authenticate(request);
    now += 10_000;
    authenticate(request);
    expect(signatures).toHaveBeenCalledTimes(1);
    now += later - 10_000;
    authenticate(request);
    expect(signatures).toHaveBeenCalledTimes(times);
  });

  test('the certificate of a connection is read only once, since Node provides its intermediates only at the first read', () => {
    const getCertificate = jest.fn(() => certificate('proxy'));
    const request = {
      rawHeaders: alice.flat(),
      socket: { getPeerX509Certificate: getCertificate },
    } as unknown as Request;
    const authenticate = requestHeader(() => configured());
    for (let count = 0; count < 3; count += 1) expect(authenticate(request)).toBeDefined();
    expect(getCertificate).toHaveBeenCalledTimes(1);
  });
});
