/** Kubernetes API conventions for an aggregated API server, tested with requests like the aggregator's. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { nodes, startLab, type LabRequest, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const accept = (text: string): LabRequest => ({ headers: { accept: text } });
const meta = (as: string): string => `application/json;as=${as};g=meta.k8s.io;v=v1`;

describe('the aggregated API server returns the kind that was requested', () => {
  test.each<[string, LabRequest, object]>([
    [nodes, {}, { kind: 'NodeList', apiVersion: 'resources.platform.io/v1alpha3' }],
    [`${nodes}/n1`, {}, { kind: 'Node', apiVersion: 'resources.platform.io/v1alpha3', metadata: { name: 'n1' } }],
    [nodes, accept(meta('Table')), { kind: 'Table', apiVersion: 'meta.k8s.io/v1' }],
    [`${nodes}/n1`, accept(meta('Table')), { kind: 'Table', apiVersion: 'meta.k8s.io/v1' }],
    [nodes, accept(meta('PartialObjectMetadataList')), { kind: 'PartialObjectMetadataList' }],
    [`${nodes}/n1`, accept(meta('PartialObjectMetadata')), { kind: 'PartialObjectMetadata' }],
    [nodes, accept(`application/vnd.kubernetes.protobuf,application/json`), { kind: 'NodeList' }],
    [`${nodes}?limit=2`, {}, { metadata: { remainingItemCount: 1, continue: expect.any(String) } }],
    ['/apis', {}, { kind: 'APIGroupList' }],
    ['/apis/resources.platform.io', {}, { kind: 'APIGroup' }],
    ['/apis/resources.platform.io/v1alpha3', {}, { kind: 'APIResourceList' }],
    [
      '/apis',
      accept('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'),
      { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' },
    ],
    ['/version', {}, { gitVersion: expect.stringMatching(/^v\d/) }],
  ])(
    'the aggregated API server returns the requested kind for %s with the options %j',
    async (path, options, expected) => {
      const response = await lab.aggregated(path, options);
      expect(response.status).toBe(200);
      expect(response.headers['content-type']).toMatch(/^application\/json/);
      expect(response.json()).toMatchObject(expected);
    },
  );
});

describe('the aggregated API server rejects with a Status', () => {
  const bob: LabRequest = { headers: { 'x-remote-user': 'bob' } };

  test.each<[string, LabRequest, number, string]>([
    [`${nodes}?limit=x`, {}, 400, 'BadRequest'],
    [`${nodes}?labelSelector=%3D%3D`, {}, 400, 'BadRequest'],
    [`${nodes}?resourceVersion=x`, {}, 400, 'BadRequest'],
    [`${nodes}?continue=x`, {}, 400, 'BadRequest'],
    [`${nodes}?timeout=x`, {}, 400, 'BadRequest'],
    [nodes, { headers: { 'x-remote-user': '' } }, 401, 'Unauthorized'],
    [nodes, bob, 403, 'Forbidden'],
    [`${nodes}/nobody`, {}, 404, 'NotFound'],
    ['/apis/resources.platform.io/v1alpha3/other', {}, 404, 'NotFound'],
    [nodes, { method: 'POST' }, 405, 'MethodNotAllowed'],
    [`${nodes}/n1`, { method: 'DELETE' }, 405, 'MethodNotAllowed'],
    [nodes, accept('application/vnd.kubernetes.protobuf'), 406, 'NotAcceptable'],
    [nodes, accept('text/html'), 406, 'NotAcceptable'],
    [nodes, accept(meta('PartialObjectMetadata')), 406, 'NotAcceptable'],
    [`${nodes}?resourceVersionMatch=Exact`, {}, 422, 'Invalid'],
    [`${nodes}?resourceVersion=0&resourceVersionMatch=Exact`, {}, 422, 'Invalid'],
  ])(
    'the aggregated API server rejects %s with the options %j, and returns a Status: %d %s',
    async (path, options, code, reason) => {
      expectFailure(await lab.aggregated(path, options), code, reason);
    },
  );

  test.each([
    [`${nodes}/n1`, '; send DELETE to /api/v1/nodes/n1'],
    [nodes.replace('/nodes', '/watch/nodes/n1'), ''],
  ])(
    'the 405 Status for a deletion names the path of kube-apiserver, except at a deprecated watch path: %s',
    async (path, hint) => {
      const { message } = (await lab.aggregated(path, { method: 'DELETE' })).json();
      expect(message).toBe(`the server does not allow this method on the requested resource, only GET, HEAD${hint}`);
    },
  );

  test.each<[string, LabRequest, string]>([
    [`${nodes}/x`, {}, 'nodes.resources.platform.io "x" not found'],
    [
      nodes,
      bob,
      'nodes.resources.platform.io is forbidden: User "bob" cannot list resource "nodes" in API group "resources.platform.io" at the cluster scope',
    ],
  ])(
    'the aggregated API server rejects %s with the options %j, and returns the message of kube-apiserver',
    async (path, options, message) => {
      expect((await lab.aggregated(path, options)).json()['message']).toBe(message);
    },
  );
});

test.each([nodes, `${nodes}/nobody`, '/apis', '/nowhere', '/livez'])(
  'every response has the Audit-Id of its request: %s',
  async (path) => {
    const auditID = 'c0ffee00-0000-4000-8000-000000000000';
    expect((await lab.aggregated(path, { headers: { 'audit-id': auditID } })).headers).toMatchObject({
      'audit-id': auditID,
      'x-content-type-options': 'nosniff',
    });
  },
);

test('HEAD returns the headers of GET without the body', async () => {
  const [get, head] = [await lab.aggregated(nodes), await lab.aggregated(nodes, { method: 'HEAD' })];
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', get.headers['content-length']]);
});

test('the pages of a list together contain all objects', async () => {
  const names: string[] = [];
  let next: string | undefined = '';
  while (next !== undefined) {
    const path = `${nodes}?limit=1&continue=${encodeURIComponent(next)}`;
    const list = (await lab.aggregated(path)).json() as {
      metadata: { continue?: string };
      items: { metadata: { name: string } }[];
    };
    names.push(...list.items.map(({ metadata }) => metadata.name));
    next = list.metadata.continue;
  }
  expect(names).toEqual(['n1', 'n2', 'n3']);
});
