/** Each hint in a 404 or 405 names a path that a route or kube-apiserver serves, with the method of the hint. */
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import * as chain from '../../src/http/chain.ts';
import type { Lab } from '../labs/conformance/lab.ts';
import { resource, serveResources } from '../labs/conformance/logging-lab.ts';

/** Arguments of createHttpHandler, the gateway's first. */
const faces: Parameters<typeof chain.createHttpHandler>[] = [];
jest.unstable_mockModule('../../src/http/chain.ts', () => ({
  ...chain,
  createHttpHandler: (...given: Parameters<typeof chain.createHttpHandler>) => {
    faces.push(given);
    return chain.createHttpHandler(...given);
  },
}));
const { startLab, login } = await import('../labs/conformance/lab.ts');

const readOnly = ['get', 'list'];
let lab: Lab;
let token: string;
beforeAll(async () => {
  const core = [
    resource('nodes', 'Node', 'Cluster'),
    resource('componentstatuses', 'ComponentStatus', 'Cluster', readOnly),
  ];
  const apps = [resource('deployments', 'Deployment', 'Namespaced')];
  lab = await startLab({ prepare: (cluster) => serveResources(cluster, { core, apps }) });
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(() => lab.stop());

type Listener = 'gateway' | 'aggregated';
const pathsOf = (listener: Listener): readonly string[] =>
  (faces[listener === 'gateway' ? 0 : 1]?.[0] ?? []).map(({ path }) => path);

const name = '[^/{}]+';
const namespace = '/namespaces/(?:[^/{}]+|\\{namespace\\})';
const object = (collection: string): string => `${collection}/(?:${name}|\\{name\\})`;
const writable = [
  '/api/v1/nodes',
  '/api/v1/namespaces',
  `/api/v1${namespace}/pods`,
  `/apis/apps/v1${namespace}/deployments`,
] as const;
/** The paths of kube-apiserver by accepted method. The discovery above lists the verbs of these methods. */
const upstream: Readonly<Record<string, readonly string[]>> = {
  POST: writable,
  DELETE: [...writable, ...writable.map(object)],
  PUT: writable.map(object),
  PATCH: writable.map(object),
};

const isServed = (listener: Listener, path: string): boolean =>
  pathsOf(listener).some((route) =>
    new RegExp(`^${route.replaceAll('.', '\\.').replaceAll(/:\w+/g, name)}$`).test(path),
  );

const isAccepted = (method: string, path: string): boolean =>
  upstream[method]?.some((pattern) => new RegExp(`^${pattern}$`).test(path)) === true;

/** Changes, appends or removes one segment of a path. */
const mutated = (path: string, kind: number, at: number): string => {
  const segments = path.split('/');
  const index = 1 + (at % (segments.length - 1));
  const segment = segments[index] ?? '';
  const changed = [segment, segment.slice(0, -1), `${segment}s`, segment.toUpperCase()][kind];
  if (changed !== undefined) return segments.with(index, changed).join('/');
  return kind === 4 ? `${path}/more` : segments.slice(0, -1).join('/');
};

const values = [
  'nodes',
  'pods',
  'deployments.apps',
  'deployments.v1.apps',
  'namespaces',
  'componentstatuses',
  'web',
  'a%20b',
];
const requests = fc.record({
  listener: fc.constantFrom<Listener>('gateway', 'aggregated'),
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
  route: fc.nat(),
  values: fc.array(fc.constantFrom(...values), { minLength: 4, maxLength: 4 }),
  kind: fc.nat({ max: 5 }),
  at: fc.nat({ max: 10 }),
});

test('each hint for a wrong path or method names a path that is served', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(requests, async ({ listener, method, route, values: [...left], kind, at }) => {
      const paths = pathsOf(listener).filter((path) => !path.includes('*'));
      const filled = (paths[route % paths.length] ?? '').replaceAll(/:\w+/g, () => left.pop() ?? 'web');
      const path = mutated(filled, kind, at) || '/';
      // A watch does not end.
      fc.pre(method !== 'GET' || !path.includes('/watch/'));
      const headers = listener === 'gateway' ? { authorization: `Bearer ${token}` } : {};
      const response = await lab[listener](path, { method, headers });
      const text = response.status === 404 || response.status === 405 ? String(response.json()['message']) : '';
      const [, hint = '', hinted = ''] =
        /; (did you mean|the nearest path is|send [A-Z]+ to) (\/\S*?)\??$/.exec(text) ?? [];
      if (hint !== '') seen.add(hint);
      const [verb, sent = ''] = hint.split(' ');
      // A message without a hint names no path at all.
      const isRight =
        hint === ''
          ? !/; .* \//.test(text)
          : verb === 'send'
            ? sent === method && isAccepted(method, hinted)
            : isServed(listener, hinted);
      expect([method, path, text, isRight]).toEqual([method, path, text, true]);
    }),
    { numRuns: 2_000 },
  );
  expect([...seen].toSorted()).toEqual([
    'did you mean',
    'send DELETE to',
    'send PATCH to',
    'send POST to',
    'send PUT to',
    'the nearest path is',
  ]);
});
