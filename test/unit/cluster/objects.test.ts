import { expect, test } from '@jest/globals';
import type { KubeRequest } from '../../../src/cluster/client/client.ts';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import type { KubeObject } from '../../../src/cluster/client/kube-object.ts';
import { Objects } from '../../../src/cluster/objects.ts';

const object: KubeObject = { metadata: { name: 'a', resourceVersion: '7' } };

/** Returns an `Objects` client for a cluster that responds with this status, and the last request to the cluster. */
function lab(code: number): { objects: Objects<KubeObject>; last: () => unknown } {
  let last: unknown;
  const json = async <T>(path: string, { method = 'GET', body, signal }: KubeRequest = {}): Promise<T> => {
    expect(signal).toBeInstanceOf(AbortSignal);
    last = { path, method, body };
    if (code !== 200) throw new KubeError(code, {});
    return object as T;
  };
  return { objects: new Objects({ json }, '/api/v1/things'), last: () => last };
}

type Call = (objects: Objects<KubeObject>) => Promise<unknown>;
const calls: readonly [name: string, call: Call, request: object, ok: unknown, results: Record<number, unknown>][] = [
  ['get', (it) => it.get('a'), { path: '/api/v1/things/a', method: 'GET' }, object, { 404: undefined }],
  ['create', (it) => it.create(object), { path: '/api/v1/things', method: 'POST', body: object }, true, { 409: false }],
  [
    'replace',
    (it) => it.replace(object),
    { path: '/api/v1/things/a', method: 'PUT', body: object },
    true,
    { 404: false, 409: false },
  ],
  [
    'patch',
    (it) => it.patch('a/status', { status: {} }),
    { path: '/api/v1/things/a/status', method: 'PATCH', body: { status: {} } },
    true,
    { 404: false, 409: false },
  ],
  [
    'delete',
    (it) => it.delete(object.metadata),
    { path: '/api/v1/things/a', method: 'DELETE', body: { preconditions: { resourceVersion: '7' } } },
    true,
    { 404: false, 409: false },
  ],
];

test.each(calls)(
  'the method %s reports a conflict or a missing object in its return value, and throws other errors',
  async (...row) => {
    const [, call, request, ok, results] = row;
    const { objects, last } = lab(200);
    expect(await call(objects)).toEqual(ok);
    expect(last()).toEqual(expect.objectContaining(request));
    const thrown = (code: number): Promise<unknown> => call(lab(code).objects).catch((error: KubeError) => error.code);
    for (const code of [403, 404, 409, 500]) expect(await thrown(code)).toBe(code in results ? results[code] : code);
  },
);
