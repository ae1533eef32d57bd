import { expect, test } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { Request, Response } from 'express';
import { accessReview } from '../../../../src/auth/authorizers/access-review.ts';
import type { Attributes, Authorizer, Decision } from '../../../../src/auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { Exchange } from '../../../../src/http/exchange.ts';
import { authorization } from '../../../../src/http/filters/authorization.ts';
import { requestInfo } from '../../../../src/http/filters/request-info.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../../fakes/cluster.ts';

const alice: UserInfo = { username: 'alice', groups: [], via: 'token' };
const pod = '/api/v1/namespaces/shop/pods/p';

/** Starts a proxied stream for the user alice. Returns the function that rechecks the rights of alice. */
async function startWith(authorizer: Authorizer, path: string, method = 'GET'): Promise<() => Promise<void>> {
  const res = new EventEmitter() as unknown as Response;
  const exchange = new Exchange({ method, url: path } as Request, res, createLogger({ silent: true }));
  exchange.info = requestInfo(method, path, exchange.query);
  exchange.isProxied = true;
  exchange.user = alice;
  let recheck: (() => Promise<void>) | undefined;
  exchange.onRecheck = (check) => void (recheck = check);
  await authorization(authorizer)(exchange);
  return async () => await recheck?.();
}

/** Starts a proxied stream with the allowed verbs `atFirst`. Returns a recheck with the allowed verbs `later`. */
async function start(
  path: string,
  atFirst: readonly string[] | Error,
  method = 'GET',
): Promise<(later: readonly string[]) => Promise<void>> {
  let verbs = atFirst;
  const authorize = async (_: unknown, { verb }: Attributes): Promise<{ allowed: boolean; reason: string }> => {
    if (verbs instanceof Error) throw verbs;
    return { allowed: verbs.includes(verb), reason: '' };
  };
  const recheck = await startWith({ authorize }, path, method);
  return async (later) => {
    verbs = later;
    await recheck();
  };
}

const both = ['get', 'create'];

test.each<[string, string, readonly string[] | Error, readonly string[], string | undefined]>([
  ['ends a WebSocket exec without the right to create', 'exec', both, ['get'], 'cannot create resource "pods/exec"'],
  [
    'ends a WebSocket attach without the right to create',
    'attach',
    both,
    ['get'],
    'cannot create resource "pods/attach"',
  ],
  [
    'ends a WebSocket port-forward without the right to create',
    'portforward',
    both,
    ['get'],
    'cannot create resource "pods/portforward"',
  ],
  ['ends a WebSocket exec without the right to get', 'exec', both, ['create'], 'cannot get resource "pods/exec"'],
  ['allows a WebSocket exec with the rights to get and create', 'exec', both, both, undefined],
  [
    'allows a WebSocket exec without the right to create if the user did not have this right at the start',
    'exec',
    ['get'],
    ['get'],
    undefined,
  ],
  ['allows a log stream without the right to create', 'log', both, ['get'], undefined],
  ['allows a proxied path without the right to create', 'proxy', both, ['get'], undefined],
])('a recheck %s', async (_, subresource, atFirst, later, missing) => {
  const recheck = await start(`${pod}/${subresource}`, atFirst);
  const refusal = await recheck(later).catch((error: unknown) => (error as Error).message);
  expect(/cannot \w+ resource "\S+"/.exec(refusal ?? '')?.[0]).toBe(missing);
});

test('the recheck of an exec over SPDY requires only the right to create', async () => {
  const recheck = await start(`${pod}/exec`, ['create'], 'POST');
  await expect(recheck(['create'])).resolves.toBeUndefined();
  await expect(recheck(['get'])).rejects.toThrow('cannot create resource "pods/exec"');
});

test.each([429, 503])(
  'the recheck of an exec whose first access review failed with %d does not require the right to create if later reviews deny this right',
  async (code) => {
    const recheck = await start(`${pod}/exec`, new StatusError('ServiceUnavailable', code, ''));
    await expect(recheck(['get'])).resolves.toBeUndefined();
    await expect(recheck(['get'])).resolves.toBeUndefined();
  },
);

test('the recheck of an exec requires the right to create after any access review has allowed it, even if earlier reviews denied it', async () => {
  const recheck = await start(`${pod}/exec`, ['get']);
  await expect(recheck(['get'])).resolves.toBeUndefined();
  await expect(recheck(both)).resolves.toBeUndefined();
  await expect(recheck(['get'])).rejects.toThrow('cannot create resource "pods/exec"');
});

test('a recheck that confirms the right to create makes later rechecks of the exec require this right, even if the first access review is pending', async () => {
  const late = Promise.withResolvers<Decision>();
  let verbs = both;
  let isFirst = true;
  const recheck = await startWith(
    {
      authorize: async (_, { verb }) => {
        const decision = { allowed: verbs.includes(verb), reason: '' };
        const isLate = isFirst;
        isFirst = false;
        return isLate ? await late.promise : decision;
      },
    },
    `${pod}/exec`,
  );
  await expect(recheck()).resolves.toBeUndefined();
  late.resolve({ allowed: false, reason: '' });
  verbs = ['get'];
  await expect(recheck()).rejects.toThrow('cannot create resource "pods/exec"');
});

test.each([429, 503])(
  'the recheck of an exec whose first access review failed with %d requires the right to create if the second review allows it',
  async (code) => {
    const recheck = await start(`${pod}/exec`, new StatusError('ServiceUnavailable', code, ''));
    await expect(recheck(both)).resolves.toBeUndefined();
    await expect(recheck(['get'])).rejects.toThrow('cannot create resource "pods/exec"');
  },
);

test('the recheck of an exec requires the right to create if the right was granted before the exec, even if a denial is still cached', async () => {
  let verbs = ['get'];
  let now = 0;
  const cluster = new MemoryCluster();
  cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => ({
    status: { allowed: verbs.includes((spec as { resourceAttributes: { verb: string } }).resourceAttributes.verb) },
  }));
  const authorizer = accessReview(cluster.client(), () => now);
  const create = { verb: 'create', group: '', resource: 'pods', subresource: 'exec', namespace: 'shop', name: 'p' };
  expect(await authorizer.authorize(alice, create)).toMatchObject({ allowed: false });
  verbs = both;
  now = 500;
  const recheck = await startWith(authorizer, `${pod}/exec`);
  await expect(recheck()).resolves.toBeUndefined();
  verbs = ['get'];
  now = 10_000;
  await expect(recheck()).rejects.toThrow('cannot create resource "pods/exec"');
});
