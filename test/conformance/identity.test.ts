/**
 * Non-ASCII names from the front proxy: access reviews and audit events contain the bytes that kube-apiserver sent, as
 * UTF-8.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { OutgoingHttpHeaders } from 'node:http2';
import { connectHTTP2, openHTTP2 } from '../client/http2.ts';
import { checked, type AppResponse } from '../fakes/request.ts';
import { nodes, startLab, type Lab } from '../labs/conformance/lab.ts';

interface Reviewed {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

let lab: Lab;
let reviewed: Reviewed[] = [];
beforeAll(async () => {
  lab = await startLab({
    prepare: (cluster) => {
      cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
        reviewed.push(spec as Reviewed);
        return { status: { allowed: true } };
      });
      const configMaps = '/api/v1/namespaces/kube-system/configmaps';
      const configMap = cluster.get(configMaps, 'extension-apiserver-authentication');
      const data = { ...(configMap?.['data'] as object), 'requestheader-uid-headers': '["X-Remote-Uid"]' };
      cluster.put(configMaps, { metadata: { name: 'extension-apiserver-authentication' }, data });
    },
  });
});
afterAll(() => lab.stop());
beforeEach(() => {
  reviewed = [];
});

/** Returns a header value with these bytes. */
const bytes = (value: string | Buffer): string => Buffer.from(value as string).toString('latin1');

async function overHTTP2(headers: OutgoingHttpHeaders): Promise<AppResponse> {
  const options = { ...lab.frontProxy, rejectUnauthorized: false };
  const session = connectHTTP2(`https://127.0.0.1:${lab.ports.aggregated}`, options);
  try {
    return await checked(openHTTP2(session, { path: nodes, headers }));
  } finally {
    session.close();
  }
}

const ways: Readonly<Record<string, (headers: OutgoingHttpHeaders) => Promise<{ status: number; text: string }>>> = {
  'HTTP/1.1': (headers) => lab.aggregated(nodes, { headers }),
  'HTTP/2': overHTTP2,
};

describe.each(Object.keys(ways))('the front proxy over %s', (version) => {
  const send = (headers: OutgoingHttpHeaders): Promise<{ status: number; text: string }> =>
    (ways[version] as (typeof ways)[string])(headers);

  test.each(['sec-é', 'sec-e\u0301', 'sec-Ã©', '\uFEFFbom', 'аlice', 'user 名 😀', 'a%20b', `${'é'.repeat(126)}x`])(
    'user, uid, groups and extra from the front proxy are used unchanged: %j',
    async (name) => {
      const headers = {
        'x-remote-user': bytes(name),
        'x-remote-uid': bytes(`${version} ${name}`),
        'x-remote-group': [bytes(`one ${name}`), bytes(`two ${name}`)],
        [`x-remote-extra-${encodeURIComponent(`key ${name}`)}`]: bytes(`value ${name}`),
      };
      expect(await send(headers)).toMatchObject({ status: 200 });
      expect(reviewed.length).toBeGreaterThan(0);
      for (const { user, uid, groups, extra } of reviewed)
        expect({ user, uid, groups, extra }).toEqual({
          user: name,
          uid: `${version} ${name}`,
          groups: [`one ${name}`, `two ${name}`, 'system:authenticated'],
          extra: { [`key ${name}`]: [`value ${name}`] },
        });
    },
  );

  test.each<[string, OutgoingHttpHeaders]>([
    ['user', { 'x-remote-user': '\xe9' }],
    ['truncated user', { 'x-remote-user': 'a\xc3' }],
    ['user with a surrogate', { 'x-remote-user': '\xed\xa0\x80' }],
    ['user in an overlong encoding', { 'x-remote-user': '\xc1\xa1lice' }],
    ['uid', { 'x-remote-user': 'alice', 'x-remote-uid': '\xff' }],
    ['group', { 'x-remote-user': 'alice', 'x-remote-group': ['a', '\xff'] }],
    ['extra', { 'x-remote-user': 'alice', 'x-remote-extra-a': '\xff' }],
    ['key of an extra', { 'x-remote-user': 'alice', 'x-remote-extra-%ff': 'a' }],
  ])('a request with invalid UTF-8 in a front proxy header gets 400: %s', async (_, headers) => {
    const response = await send(headers);
    expect(response.status).toBe(400);
    expect(response.text).toContain('is not valid UTF-8');
    expect(reviewed).toEqual([]);
  });
});

test('user names that a Latin-1 decoder would confuse identify different users', async () => {
  for (const name of ['sec-é', 'sec-Ã©']) await lab.aggregated(nodes, { headers: { 'x-remote-user': bytes(name) } });
  expect(new Set(reviewed.map(({ user }) => user))).toEqual(new Set(['sec-é', 'sec-Ã©']));
});

test('an anonymous user of the front proxy is not added to the group system:authenticated', async () => {
  const headers = { 'x-remote-user': 'system:anonymous', 'x-remote-group': 'system:unauthenticated' };
  await lab.aggregated(nodes, { headers });
  expect(reviewed.length).toBeGreaterThan(0);
  for (const { user, groups } of reviewed)
    expect({ user, groups }).toEqual({ user: 'system:anonymous', groups: ['system:unauthenticated'] });
});
