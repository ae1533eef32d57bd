import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { Readable } from 'node:stream';
import { authenticated, type Access } from '../../../src/http/access.ts';
import { defineRoute, type RouteDefinition } from '../../../src/http/define-route.ts';
import { jsonBody } from '../../../src/http/request/json-body.ts';
import { flagParameter, queryParameters } from '../../../src/http/request/parameters.ts';
import { json, type RequestContext } from '../../../src/http/route.ts';
import { described, object, text } from '../../../src/http/schema.ts';
import { forbiddenPath } from '../../../src/runtime/errors.ts';

const query = queryParameters({ force: described('Even if it is in use', flagParameter.default(false)) });
const body = jsonBody(object({ reason: text }));

/** Calls a route with this definition, and returns the arguments of its handler. */
async function call(
  more: Partial<RouteDefinition<'/things/:name', Access, { force: boolean }, { reason: string }, string>>,
  { search = '', sent = '{"reason":"none"}' } = {},
): Promise<unknown> {
  let received: unknown;
  const route = defineRoute({
    method: 'post',
    path: '/things/:name',
    pathParameters: { name: 'The name of the thing' },
    summary: 'Reject a thing',
    description: 'Requires the right to update things.',
    access: authenticated,
    query,
    body,
    responses: json(text),
    handler({ path, query: parsed, body: content, granted }) {
      received = { path, query: parsed, body: content, granted };
    },
    ...more,
  });
  const req = Object.assign(Readable.from([Buffer.from(sent)]), { headers: {}, params: { name: 'one' } });
  const context = { query: new URLSearchParams(search) };
  await route.handler(req as unknown as Request, {} as Response, context as RequestContext);
  return received;
}

test('a route handler receives the parsed path, query and body, and the result of authorize()', async () => {
  expect(await call({ authorize: () => 'as owner' }, { search: 'force=true' })).toEqual({
    path: { name: 'one' },
    query: { force: true },
    body: { reason: 'none' },
    granted: 'as owner',
  });
});

const refuse = (): never => {
  throw forbiddenPath('not yours');
};

test('an unauthorized request is rejected before its query and body are parsed', async () => {
  const wrong = { search: 'froce=1', sent: 'not JSON' };
  await expect(call({ authorize: refuse }, wrong)).rejects.toMatchObject({ code: 403 });
  await expect(call({}, wrong)).rejects.toMatchObject({
    code: 400,
    message: expect.stringContaining('froce') as unknown,
  });
  await expect(call({}, { sent: 'not JSON' })).rejects.toMatchObject({ code: 400 });
});

test.each([
  ['{}', 'reason: is missing'],
  ['{"reason":1}', 'reason: must be'],
  ['{"reason":"a","more":"secret"}', 'more'],
  ['[]', 'body: must be'],
])('the request body %s is rejected, and the error quotes no value', async (sent, expected) => {
  const error: unknown = await call({}, { sent }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 400, message: expect.stringContaining(expected) as unknown });
  expect((error as Error).message).not.toContain('secret');
});

test('the description of a route lists its path, query and body in this order', () => {
  const { parameters, body: bodyDescription } = defineRoute({
    method: 'post',
    path: '/things/:name',
    pathParameters: { name: 'The name of the thing' },
    summary: 'Reject a thing',
    description: 'Requires the right to update things.',
    access: authenticated,
    query,
    body,
    responses: json(text),
    handler: () => undefined,
  });
  expect(parameters?.map(({ in: place, name }) => `${place} ${name}`)).toEqual(['path name', 'query force']);
  expect(bodyDescription).toBe(body.description);
});
