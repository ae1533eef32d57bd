/** Descriptions at /swagger: they list exactly what is served, including parameters. */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { AppResponse, AppRequest } from '../fakes/request.ts';
import * as chain from '../../src/http/chain.ts';
import type { Route } from '../../src/http/route.ts';
import type { Lab } from '../labs/conformance/lab.ts';
import { serveResources } from '../labs/conformance/logging-lab.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<string, unknown>>;
  readonly deprecated?: boolean;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

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

const names = ['platform.json', 'platform.v3.json'];

let lab: Lab;
let authorization: string;
let v2: Document;
let v3: Document;

beforeAll(async () => {
  lab = await startLab({ prepare: serveResources });
  authorization = `Bearer ${String((await lab.token(login)).json()['access_token'])}`;
  [v2, v3] = (await Promise.all(names.map(async (name) => JSON.parse((await send(name)).text) as Document))) as [
    Document,
    Document,
  ];
});
afterAll(() => lab.stop());

const send = (name: string, more: AppRequest = {}): Promise<AppResponse> => lab.gateway(`/swagger/${name}`, more);

const operationsOf = ({ paths }: Document): (readonly [method: string, path: string, operation: Operation])[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [method, path, operation] as const),
  );
const linesOf = (document: Document): string[] =>
  operationsOf(document)
    .map(([method, path]) => `${method} ${path}`)
    .toSorted();

/** Fills in the parameters of a path. */
const filled = (path: string): string =>
  path
    .replace(/(?<=\{namespace\}\/)\{resources\}/, 'pods')
    .replace('{resources}', 'namespaces')
    .replaceAll(/\{(\w+)\}/g, 'x');

test('the OpenAPI descriptions list exactly the routes of the server', () => {
  const [routes, { gateway }] = faces[0] as Parameters<typeof chain.createHttpHandler>;
  const served = routes.map(({ method, path }: Route) => `${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`).toSorted();
  expect(served.length).toBeGreaterThan(50);
  expect(linesOf(v3)).toEqual(served);
  expect(linesOf(v2)).toEqual(served);
  // Paths with these prefixes are forwarded to kube-apiserver, which describes them itself.
  expect([...(gateway?.prefixes ?? [])].toSorted()).toEqual(['api', 'apis', 'openapi', 'version']);
  expect(served.filter((line) => /^\w+ \/(api|apis|openapi|version)(\/|$)/.test(line))).toEqual([]);
});

test('each path supports exactly the methods in its OpenAPI description', async () => {
  const described = Object.entries(v3.paths).map(([path, item]) => [path, Object.keys(item)] as const);
  const responses = described.map(async ([path]) => {
    const { status, headers } = await lab.gateway(filled(path), { method: 'PROPFIND', headers: { authorization } });
    return [path, status, String(headers['allow']).split(', ').toSorted()];
  });
  expect(await Promise.all(responses)).toEqual(
    described.map(([path, methods]) => [
      path,
      405,
      methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).toSorted(),
    ]),
  );
});

test('the Swagger 2 and OpenAPI 3 descriptions agree on each operation', () => {
  const shape = (document: Document): unknown =>
    operationsOf(document).map(([method, path, { operationId, tags, deprecated, parameters = [], responses }]) => [
      `${method} ${path}`,
      operationId,
      tags,
      deprecated,
      parameters.filter((one) => one.in !== 'body' && one.in !== 'formData').map((one) => `${one.in} ${one.name}`),
      Object.keys(responses),
    ]);
  expect(shape(v2)).toEqual(shape(v3));
  const ids = operationsOf(v3).map(([, , { operationId }]) => operationId);
  expect(ids).toEqual([...new Set(ids)]);
});

test('every object schema has a name for client generators, except the schemas of HTML forms', () => {
  const nameless: string[] = [];
  const visit = (value: unknown, at: string, isNamed = false): void => {
    if (typeof value !== 'object' || value === null) return;
    const { properties, anyOf } = value as Readonly<Record<string, unknown>>;
    const isFields = (typeof properties === 'object' && !at.endsWith('/properties')) || Array.isArray(anyOf);
    if (isFields && !isNamed) nameless.push(at);
    for (const [key, one] of Object.entries(value)) visit(one, `${at}/${key}`);
  };
  const { schemas } = (v3 as unknown as { components: { schemas: Readonly<Record<string, object>> } }).components;
  for (const [name, schema] of Object.entries(schemas)) visit(schema, name, true);
  for (const [method, path, operation] of operationsOf(v3))
    if (!operation.tags.includes('pages')) visit(operation, `${method} ${path}`);
  expect(Object.keys(schemas).length).toBeGreaterThan(50);
  expect(nameless).toEqual([]);
});

test('every path variable has a parameter in the OpenAPI description', () => {
  for (const [, path, { parameters = [] }] of operationsOf(v3))
    expect([path, parameters.filter((one) => one.in === 'path').map(({ name }) => name)]).toEqual([
      path,
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
    ]);
});

test('only operations that can return 406 have a 406 response in the OpenAPI description', async () => {
  const fetched = operationsOf(v3).map(async ([method, path, { requestBody }]) => {
    const [type] = Object.keys(requestBody?.content ?? {});
    const sent = type === undefined ? {} : { 'content-type': type, 'content-length': '2' };
    const { status } = await lab.gateway(filled(path), {
      method: method.toUpperCase(),
      headers: { authorization, accept: 'image/png', ...sent },
      ...(type === undefined ? {} : { body: '{}' }),
    });
    return [`${method} ${path}`, status === 406];
  });
  const described = operationsOf(v3).map(([method, path, { responses }]) => [
    `${method} ${path}`,
    responses['406'] !== undefined,
  ]);
  expect(await Promise.all(fetched)).toEqual(described);
});

test('passing the default value of a parameter has the same effect as omitting the parameter', async () => {
  type Sent = { readonly name: string; readonly in: string; readonly schema?: { readonly default?: unknown } };
  let checked = 0;
  for (const [method, path, { parameters = [] }] of operationsOf(v3)) {
    const defaults = (parameters as readonly Sent[]).filter((one) => one.schema?.default !== undefined);
    if (method !== 'get' || defaults.length === 0) continue;
    const query = new URLSearchParams(
      defaults.map(({ name, schema }): [string, string] => [name, String(schema?.default)]),
    );
    const statuses = await Promise.all(
      ['', `?${query.toString()}`].map(
        async (one) => (await lab.gateway(`${filled(path)}${one}`, { headers: { authorization } })).status,
      ),
    );
    expect([path, ...statuses]).toEqual([path, statuses[0], statuses[0]]);
    checked += 1;
  }
  expect(checked).toBeGreaterThan(10);
});

/** Returns the names that the operation knows as parameters; undefined if it ignores unknown parameters. */
async function knownAmong(
  parameters: readonly string[],
  [method, path, { requestBody }]: readonly [string, string, Operation],
  query: string,
): Promise<readonly string[] | undefined> {
  const [type] = Object.keys(requestBody?.content ?? {});
  const headers = { authorization, ...(type === undefined ? {} : { 'content-type': type, 'content-length': '2' }) };
  // The first parameter is unknown everywhere, so that the request has no effect.
  const pairs = ['no-such=1', query, ...parameters.map((name) => `${name}=${name === 'watch' ? 'false' : 'x'}`)];
  const response = await lab.gateway(`${filled(path)}?${pairs.filter((one) => one !== '').join('&')}`, {
    method: method.toUpperCase(),
    headers,
    ...(type === undefined ? {} : { body: '{}' }),
  });
  if (response.status !== 400) return undefined;
  const { causes = [] } = (response.json()['details'] ?? {}) as {
    readonly causes?: readonly { readonly field: string; readonly message: string }[];
  };
  const isUnknown = (name: string): boolean =>
    causes.some(({ field, message }) => field === name && message.startsWith('unknown parameter'));
  if (!isUnknown('no-such')) return undefined;
  return parameters.filter((name) => !isUnknown(name));
}

/** Returns the parameters that the operation knows, among all parameters of the document. */
async function knownParameters(
  operation: readonly [string, string, Operation],
  query: string,
): Promise<readonly string[] | undefined> {
  const all = new Set(
    operationsOf(v3).flatMap(([, , { parameters = [] }]) =>
      parameters.filter((one) => one.in === 'query').map(({ name }) => name),
    ),
  );
  const found: string[] = [];
  // An error names at most 20 parameters.
  const described = [...all];
  if ((await knownAmong([], operation, query)) === undefined) return undefined;
  for (let at = 0; at < described.length; at += 8) {
    const some = described.slice(at, at + 8);
    const known = await knownAmong(some, operation, query);
    if (known !== undefined) found.push(...known);
    // A known parameter such as serviceName can cause another error, which hides unknown parameters. Tries each alone.
    else for (const name of some) found.push(...((await knownAmong([name], operation, query)) ?? [name]));
  }
  return found;
}

describe('the server accepts exactly the described parameters', () => {
  /** Operations that take no query or ignore unknown parameters. */
  const indifferent =
    /^(?:get \/(?:kapis(?:\/[\w.]+){0,2}|swagger\/[\w.-]+|docs(?:\/.+)?|metrics|(?:livez|readyz|healthz)(?:\/\{check\})?)$|\w+ \/(?:oauth|\.well-known)\/)/;

  test('the server accepts exactly the described parameters of all operations below /kapis', async () => {
    let checked = 0;
    for (const [method, path, operation] of operationsOf(v3)) {
      const { parameters = [], deprecated } = operation;
      const line = `${method} ${path}`;
      if (indifferent.test(line) || deprecated === true) continue;
      const described = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
      const plain = (await knownParameters([method, path, operation], '')) ?? ['none listed'];
      const isObject = described.includes('watch') && path.endsWith('{name}');
      const watched = isObject ? ((await knownParameters([method, path, operation], 'watch=true')) ?? []) : [];
      const pages = new Set(['page', 'limit', 'sortBy', 'ascending']);
      // Parameters of a single resource name it in their description.
      const others = path.includes('{resources}')
        ? parameters.filter(({ description }) => /^`\w+`: /.test(description)).map(({ name }) => name)
        : [];
      const all = new Set([...plain, ...watched.filter((name) => !pages.has(name)), ...others]);
      expect([line, described.toSorted()]).toEqual([line, [...all].toSorted()]);
      checked += 1;
    }
    expect(checked).toBeGreaterThan(20);
  });
});

describe.each(names)('/swagger/%s', (name) => {
  test('the Swagger document is public and supports ETags', async () => {
    const plain = await send(name);
    expect(plain).toMatchObject({ status: 200 });
    expect(plain.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    const etag = String(plain.headers['etag']);
    expect(await send(name, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304, text: '' });
    const head = await send(name, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers).toMatchObject({ etag, 'content-length': plain.headers['content-length'] });
    const zipped = await send(name, { headers: { 'accept-encoding': 'gzip' } });
    expect(zipped.headers).toMatchObject({ 'content-encoding': 'gzip' });
    expect(Number(zipped.headers['content-length'])).toBeLessThan(plain.text.length / 4);
  });

  test('the Swagger document equals the published file except for the issuer', async () => {
    const published = readFileSync(new URL(`../../api/${name}`, import.meta.url), 'utf8');
    const { issuer } = await import('../labs/conformance/lab.ts');
    const here = (await send(name)).text.replaceAll(issuer, 'https://platform-apiserver.platform-system.svc');
    expect(JSON.parse(here)).toEqual(JSON.parse(published));
  });
});
