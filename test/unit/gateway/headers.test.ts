// evidence: gateway-headers
import { describe, expect, test } from '@jest/globals';
import { headersDown, headersUp } from '../../../src/gateway/headers.ts';

type Fields = readonly (readonly [name: string, value: string])[];

/** Converts pairs to an array of alternating names and values, as in `rawHeaders` of Node; `pairs` does the reverse. */
const raw = (fields: Fields): string[] => fields.flat();
const pairs = (headers: readonly string[]): Fields =>
  Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at] ?? '', headers[2 * at + 1] ?? '']);

const ours = { auditID: 'the-audit-id', sourceIP: '192.0.2.1' };
const added: Fields = [
  ['Audit-Id', ours.auditID],
  ['X-Forwarded-For', ours.sourceIP],
];
const up = (fields: Fields): Fields => pairs(headersUp(raw(fields), ours));
const down = (fields: Fields): Fields => pairs(headersDown(raw(fields)));

const ofOneConnection = [
  'Connection',
  'Keep-Alive',
  'Proxy-Authenticate',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'HTTP2-Settings',
];

describe('the gateway and request headers', () => {
  test.each([
    ...ofOneConnection,
    'Host',
    'Content-Length',
    'Expect',
    'Authorization',
    'Cookie',
    'Audit-ID',
    'X-Forwarded-For',
    'X-Real-IP',
    'X-Remote-User',
    'X-Remote-Extra-Scopes',
    'x-remote-',
    'Impersonate-User',
    'IMPERSONATE-EXTRA-SCOPES',
    ':authority',
    ':path',
  ])('the gateway does not send the header %s of a client to kube-apiserver, whatever its case', (name) => {
    for (const spelled of [name, name.toLowerCase(), name.toUpperCase()])
      expect(
        up([
          ['Accept', 'a'],
          [spelled, 'x'],
          ['X-Own', 'b'],
        ]),
      ).toEqual([['Accept', 'a'], ['X-Own', 'b'], ...added]);
  });

  test('the gateway sends all other request headers unchanged and in order', () => {
    const fields: Fields = [
      ['Accept', 'application/json'],
      ['user-agent', 'kubectl, accept'],
      ['X-Remotely', ''],
      ['Not-Impersonate-User', 'a'],
      ['My-X-Remote-User', 'a'],
      ['X-Hosts', 'a'],
      ['X-Own', 'one'],
      ['x-own', 'two'],
      ['Set-Cookie', 'a'],
      ['Access-Control-Request-Method', 'GET'],
    ];
    expect(up(fields)).toEqual([...fields, ...added]);
  });

  test.each<[string, string[]]>([
    ['close', ['X-One', 'X-Two', 'X-Three']],
    ['x-one', ['X-Two', 'X-Three']],
    ['X-TWO ,X-One', ['X-Three']],
    [' , x-three,', ['X-One', 'X-Two']],
    ['x-one x-two', ['X-One', 'X-Two', 'X-Three']],
    // A client cannot remove headers that the gateway itself sets.
    ['audit-id, x-forwarded-for', ['X-One', 'X-Two', 'X-Three']],
  ])('the gateway removes the headers named in "Connection: %s", so that %j remain', (value, names) => {
    const fields: Fields = [
      ['X-One', '1'],
      ['CONNECTION', value],
      ['X-Two', '2'],
      ['X-Three', '3'],
    ];
    const kept = fields.filter(([name]) => names.includes(name));
    expect(up(fields)).toEqual([...kept, ...added]);
    expect(down(fields)).toEqual(kept);
  });

  test('the gateway removes the headers named in either of two Connection headers', () => {
    const fields: Fields = [
      ['Connection', 'x-one'],
      ['X-One', '1'],
      ['X-Two', '2'],
      ['Connection', 'x-two'],
    ];
    expect(up(fields)).toEqual(added);
    expect(down(fields)).toEqual([]);
  });

  const secret = 'base64url.bearer.authorization.k8s.io.c2VjcmV0';
  test.each([
    ['v4.channel.k8s.io', 'v4.channel.k8s.io'],
    [`v5.channel.k8s.io,${secret} ,  v4.channel.k8s.io`, 'v5.channel.k8s.io, v4.channel.k8s.io'],
    [`${secret}, ${secret}x, a`, 'a'],
    [`not-${secret}`, `not-${secret}`],
    ['base64url-bearer.authorization.k8s.io.a', 'base64url-bearer.authorization.k8s.io.a'],
    [secret, ''],
  ])('the gateway sends the subprotocols %j as %j, without the token', (offered, expected) => {
    const fields = up([['Sec-WebSocket-Protocol', offered]]);
    expect(fields).toEqual([...(expected === '' ? [] : [['Sec-WebSocket-Protocol', expected]]), ...added]);
  });
});

describe('the gateway and response headers', () => {
  test.each([
    ...ofOneConnection,
    'Set-Cookie',
    'Strict-Transport-Security',
    'Alt-Svc',
    'Access-Control-Allow-Origin',
    'Access-Control-Expose-Headers',
  ])('the gateway does not send the header %s of kube-apiserver to a client, whatever its case', (name) => {
    for (const spelled of [name, name.toLowerCase(), name.toUpperCase()])
      expect(
        down([
          ['ETag', 'a'],
          [spelled, 'x'],
          ['X-Own', 'b'],
        ]),
      ).toEqual([
        ['ETag', 'a'],
        ['X-Own', 'b'],
      ]);
  });

  test('the gateway sends all other response headers unchanged and in order', () => {
    const fields: Fields = [
      ['Audit-Id', 'a'],
      ['content-length', '2'],
      ['Content-Type', 'application/json'],
      ['Warning', '299 - "one"'],
      ['Warning', '299 - "two"'],
      ['X-Access-Control-Allow-Origin', '*'],
      ['Access-Controlled', ''],
      ['X-Kubernetes-Pf-Flowschema-Uid', 'a'],
    ];
    expect(down(fields)).toEqual(fields);
  });
});
