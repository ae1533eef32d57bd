/** Bodies of user writes that kube-apiserver rejects: the caller gets that error, never a 5xx. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { call, gateway } from '../labs/integration/http.ts';
import { adminToken } from '../labs/integration/login.ts';
import { createUser, removeUser } from '../labs/integration/user-objects.ts';

const users = '/kapis/iam.platform.io/v1alpha2/users';
const name = 'odd-bodies';
const type = { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User' };

let token = '';
beforeAll(async () => {
  token = await adminToken();
  await createUser(name);
});
afterAll(() => removeUser(name));

const values = [null, 5, 'x', true, [], {}, [null]];
const paths = [
  '',
  '/',
  '/spec',
  '/spec/-',
  '/spec/0',
  '/metadata',
  '/metadata/name',
  '/kind',
  '/apiVersion',
  '/a/b',
  '/~',
  '/~2',
];
const indices = ['-1', '0', '99', '99999999999999999999'].map((index) => `/metadata/managedFields/${index}`);
const all = [...paths, ...indices];
const patches: readonly (readonly object[])[] = [
  ...['add', 'replace', 'test'].flatMap((op) => all.flatMap((path) => values.map((value) => [{ op, path, value }]))),
  ...all.map((path) => [{ op: 'remove', path }]),
  ...['move', 'copy'].flatMap((op) => all.flatMap((path) => paths.map((from) => [{ op, path, from }]))),
  [
    { op: 'replace', path: '', value: null },
    { op: 'add', path: '/a', value: 1 },
  ],
  [{ op: 'replace', path: '', value: { kind: 'User' } }],
  [
    { op: 'remove', path: '' },
    { op: 'test', path: '', value: 1 },
  ],
];
const objects = [
  ...values,
  { metadata: null },
  { metadata: 5 },
  ...[5, {}].map((one) => ({ metadata: { name: one } })),
  ...['labels', 'annotations', 'managedFields', 'creationTimestamp', 'finalizers', 'ownerReferences'].flatMap((key) =>
    [5, [null], [{ fieldsV1: 5 }]].map((value) => ({ metadata: { name, [key]: value } })),
  ),
  { spec: null },
  { kind: 5 },
  { apiVersion: null },
  { kind: null },
  { apiVersion: '' },
  { kind: '' },
  { apiVersion: 'a/b/c' },
  { apiVersion: {} },
];
const typed = objects.map((value) => (value?.constructor === Object ? { ...type, ...value } : value));

test.each<[string, string, string, readonly unknown[]]>([
  ['PATCH', `${users}/${name}`, 'application/json-patch+json', patches],
  ['PATCH', `${users}/${name}`, 'application/merge-patch+json', objects],
  ['PUT', `${users}/${name}`, 'application/json', [...objects, ...typed]],
  ['POST', users, 'application/json', [...objects, ...typed]],
  ['DELETE', `${users}/${name}`, 'application/json', objects],
])('%s %s with a malformed body of type %s never gets a 5xx status', async (method, path, contentType, bodies) => {
  const wrong: [unknown, number, string][] = [];
  for (const body of bodies) {
    const { status, text } = await call(`${gateway()}${path}?dryRun=All`, {
      method,
      token,
      headers: { 'content-type': contentType },
      body: JSON.stringify(body),
    });
    if (status >= 500) wrong.push([body, status, text]);
  }
  expect(wrong).toEqual([]);
});
