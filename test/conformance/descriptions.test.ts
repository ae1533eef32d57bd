/** The descriptions at /swagger: all that is served is described, and nothing else, down to the parameters. */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { Answer, Ask } from '../fakes/ask.ts';
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

/** What each face was given to serve, the gateway's first. */
const faces: Parameters<typeof chain.createFace>[] = [];
jest.unstable_mockModule('../../src/http/chain.ts', () => ({
  ...chain,
  createFace: (...given: Parameters<typeof chain.createFace>) => {
    faces.push(given);
    return chain.createFace(...given);
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
  [v2, v3] = (await Promise.all(names.map(async (name) => JSON.parse((await ask(name)).text) as Document))) as [
    Document,
    Document,
  ];
});
afterAll(() => lab.stop());

const ask = (name: string, more: Ask = {}): Promise<Answer> => lab.gateway(`/swagger/${name}`, more);

const operationsOf = ({ paths }: Document): (readonly [method: string, path: string, operation: Operation])[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [method, path, operation] as const),
  );
const linesOf = (document: Document): string[] =>
  operationsOf(document)
    .map(([method, path]) => `${method} ${path}`)
    .toSorted();

/** With a name for each parameter in it. */
const filled = (path: string): string =>
  path
    .replace(/(?<=\{namespace\}\/)\{resources\}/, 'pods')
    .replace('{resources}', 'namespaces')
    .replaceAll(/\{(\w+)\}/g, 'x');

test('each route is described, and each description is a route', () => {
  const [routes, { gateway }] = faces[0] as Parameters<typeof chain.createFace>;
  const served = routes.map(({ method, path }: Route) => `${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`).toSorted();
  expect(served.length).toBeGreaterThan(50);
  expect(linesOf(v3)).toEqual(served);
  expect(linesOf(v2)).toEqual(served);
  // What is passed on describes itself, and this is all of it.
  expect([...(gateway?.prefixes ?? [])].toSorted()).toEqual(['api', 'apis', 'openapi', 'version']);
  expect(served.filter((line) => /^\w+ \/(api|apis|openapi|version)(\/|$)/.test(line))).toEqual([]);
});

test('the methods of each path are those that are described', async () => {
  const described = Object.entries(v3.paths).map(([path, item]) => [path, Object.keys(item)] as const);
  const answers = described.map(async ([path]) => {
    const { status, headers } = await lab.gateway(filled(path), { method: 'PROPFIND', headers: { authorization } });
    return [path, status, String(headers['allow']).split(', ').toSorted()];
  });
  expect(await Promise.all(answers)).toEqual(
    described.map(([path, methods]) => [
      path,
      405,
      methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).toSorted(),
    ]),
  );
});

test('both say the same of an operation', () => {
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

test('whatever has fields has a name, by which clients are generated; the forms of pages have none', () => {
  const nameless: string[] = [];
  const look = (value: unknown, at: string, isNamed = false): void => {
    if (typeof value !== 'object' || value === null) return;
    const { properties, anyOf } = value as Readonly<Record<string, unknown>>;
    const isFields = (typeof properties === 'object' && !at.endsWith('/properties')) || Array.isArray(anyOf);
    if (isFields && !isNamed) nameless.push(at);
    for (const [key, one] of Object.entries(value)) look(one, `${at}/${key}`);
  };
  const { schemas } = (v3 as unknown as { components: { schemas: Readonly<Record<string, object>> } }).components;
  for (const [name, schema] of Object.entries(schemas)) look(schema, name, true);
  for (const [method, path, operation] of operationsOf(v3))
    if (!operation.tags.includes('pages')) look(operation, `${method} ${path}`);
  expect(Object.keys(schemas).length).toBeGreaterThan(50);
  expect(nameless).toEqual([]);
});

test('every name in a path is a parameter', () => {
  for (const [, path, { parameters = [] }] of operationsOf(v3))
    expect([path, parameters.filter((one) => one.in === 'path').map(({ name }) => name)]).toEqual([
      path,
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
    ]);
});

test('406 is described where it is answered, and nowhere else', async () => {
  const answers = operationsOf(v3).map(async ([method, path, { requestBody }]) => {
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
  expect(await Promise.all(answers)).toEqual(described);
});

test('what is sent by default is answered as if it were not sent', async () => {
  type Sent = { readonly name: string; readonly in: string; readonly schema?: { readonly default?: unknown } };
  let judged = 0;
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
    judged += 1;
  }
  expect(judged).toBeGreaterThan(10);
});

/** The parameters that the server says it knows, where it refuses others; undefined where it takes no notice of them. */
async function known(
  method: string,
  path: string,
  { requestBody }: Operation,
  query: string,
): Promise<string[] | undefined> {
  const [type] = Object.keys(requestBody?.content ?? {});
  const headers = { authorization, ...(type === undefined ? {} : { 'content-type': type, 'content-length': '2' }) };
  const { status, text } = await lab.gateway(`${filled(path)}?${query}`, {
    method: method.toUpperCase(),
    headers,
    ...(type === undefined ? {} : { body: '{}' }),
  });
  const [, list] = /known (?:ones? (?:are|is)|parameters are) ([\w, ]+)/.exec(text) ?? [];
  return status === 400 ? list?.split(', ') : undefined;
}

describe('the parameters that are known are those that are described', () => {
  /** They know no query, or take no notice of what they do not know. */
  const indifferent =
    /^(?:get \/(?:kapis(?:\/[\w.]+){0,2}|swagger\/[\w.-]+|docs(?:\/.+)?|metrics|(?:livez|readyz|healthz)(?:\/\{check\})?)$|\w+ \/(?:oauth|\.well-known)\/)/;

  test('of all operations below /kapis', async () => {
    let judged = 0;
    for (const [method, path, operation] of operationsOf(v3)) {
      const { parameters = [], deprecated } = operation;
      const line = `${method} ${path}`;
      if (indifferent.test(line) || deprecated === true) continue;
      const described = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
      const plain = (await known(method, path, operation, 'no-such=1')) ?? ['none was named'];
      const isObject = described.includes('watch') && path.endsWith('{name}');
      const watched = isObject ? ((await known(method, path, operation, 'no-such=1&watch=true')) ?? []) : [];
      const pages = new Set(['page', 'limit', 'sortBy', 'ascending']);
      // Those of other kinds say whose they are.
      const others = path.includes('{resources}')
        ? parameters.filter(({ description }) => /^(only )?of \w+: /.test(description)).map(({ name }) => name)
        : [];
      const all = new Set([...plain, ...watched.filter((name) => !pages.has(name)), ...others]);
      expect([line, described.toSorted()]).toEqual([line, [...all].toSorted()]);
      judged += 1;
    }
    expect(judged).toBeGreaterThan(20);
  });
});

describe.each(names)('/swagger/%s', (name) => {
  test('is for everybody, and is known again by its ETag', async () => {
    const plain = await ask(name);
    expect(plain).toMatchObject({ status: 200 });
    expect(plain.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    const etag = String(plain.headers['etag']);
    expect(await ask(name, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304, text: '' });
    const head = await ask(name, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers).toMatchObject({ etag, 'content-length': plain.headers['content-length'] });
    const zipped = await ask(name, { headers: { 'accept-encoding': 'gzip' } });
    expect(zipped.headers).toMatchObject({ 'content-encoding': 'gzip' });
    expect(Number(zipped.headers['content-length'])).toBeLessThan(plain.text.length / 4);
  });

  test('is what is published, but for the issuer', async () => {
    const published = readFileSync(new URL(`../../api/${name}`, import.meta.url), 'utf8');
    const { issuer } = await import('../labs/conformance/lab.ts');
    const here = (await ask(name)).text.replaceAll(issuer, 'https://platform-apiserver.platform-system.svc');
    expect(JSON.parse(here)).toEqual(JSON.parse(published));
  });
});
