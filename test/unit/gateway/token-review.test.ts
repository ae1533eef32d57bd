/** The gateway reviews tokens of this server itself, and forwards all other TokenReviews to a fake kube-apiserver. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ValidToken } from '../../../src/auth/authenticators/access-tokens.ts';
import { gateway } from '../../../src/gateway/index.ts';
import type { Gateway } from '../../../src/http/route.ts';
import type { HttpHandler } from '../../../src/http/listeners/http-handler.ts';
import { send, sendRequest, type AppResponse } from '../../fakes/request.ts';
import { FakeKubeApiserver, upstreamAt } from '../../fakes/upstream.ts';
import { as, face } from '../../labs/http.ts';

const issuer = 'https://platform.example';
const path = '/apis/authentication.k8s.io/v1/tokenreviews';
const json = 'application/json';
const protobuf = 'application/vnd.kubernetes.protobuf';

const kube = new FakeKubeApiserver();
let app: HttpHandler;
/** Receives what the handler of the gateway throws. */
let failed: (error: unknown) => void = () => undefined;
let validated: string[] = [];
let reviews: unknown[] = [];
/** Resolves when the permission of a caller is checked, before the body is read. */
let allowed = Promise.withResolvers<void>();
const valid = {
  subject: { username: 'anna', uid: 'uid-1', groups: ['developers'] },
} as unknown as ValidToken;

beforeAll(async () => {
  const client = { upstream: upstreamAt(await kube.listen()), identity: async () => ({ username: 'the-server' }) };
  const accessTokens = {
    validate: async (token: string) => {
      validated.push(token);
      return token === 'of-anna' ? valid : undefined;
    },
  };
  const authorizer = {
    authorize: async ({ username }: { readonly username: string }, attributes: unknown) => {
      reviews.push([username, attributes]);
      allowed.resolve();
      return { allowed: username !== 'nobody', reason: '' };
    },
  };
  const tested = gateway({ client, accessTokens, authorizer, issuer: () => issuer });
  const handler: Gateway['handler'] = async (...request) => {
    try {
      await tested.handler(...request);
    } catch (error) {
      failed(error);
      throw error;
    }
  };
  ({ app } = face({ gateway: { ...tested, handler } }));
});
afterAll(() => kube.close());
beforeEach(() => {
  kube.taken();
  [validated, reviews] = [[], []];
  allowed = Promise.withResolvers();
});

const review = (token: unknown, audiences?: readonly unknown[] | null, type: object = {}): string =>
  JSON.stringify({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, ...(audiences === undefined ? {} : { audiences }) },
    ...type,
  });

const post = (
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
  { user = 'reviewer', at = path } = {},
): Promise<AppResponse> =>
  sendRequest(app, at, { method: 'POST', body, ...as(user, { 'content-type': json, ...headers }) });

/** Encodes length-delimited protobuf fields. */
const message = (...fields: readonly [number, string | Buffer][]): Buffer =>
  Buffer.concat(
    fields.flatMap(([number, value]) => {
      const bytes = Buffer.from(value);
      return [Buffer.from([(number << 3) | 2, bytes.length]), bytes];
    }),
  );

const inProtobuf = (token: string, ...audiences: readonly string[]): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    message(
      [1, message([1, 'authentication.k8s.io/v1'], [2, 'TokenReview'])],
      [2, message([2, message([1, token], ...audiences.map((audience): [number, string] => [2, audience]))])],
    ),
  ]);

describe('a review of an access token of this server', () => {
  // evidence: gateway-token-review
  test.each<[string, string | Buffer, Record<string, string>]>([
    ['in JSON', review('of-anna'), {}],
    ['for the issuer', review('of-anna', ['https://other.example', issuer]), {}],
    ['with null as the audiences', review('of-anna', null), {}],
    ['with a charset', review('of-anna'), { 'content-type': `${json}; charset=utf-8` }],
    ['in protobuf', inProtobuf('of-anna'), { 'content-type': protobuf, accept: `${protobuf},${json}` }],
    ['in protobuf for the issuer', inProtobuf('of-anna', 'x', issuer), { 'content-type': protobuf, accept: '*/*' }],
  ])('a review of an access token of this server %s is handled by this server', async (_, body, headers) => {
    const response = await post(body, headers);
    expect([response.status, response.headers['content-type']]).toEqual([201, json]);
    expect(response.json()).toMatchObject({
      kind: 'TokenReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      spec: { token: 'of-anna' },
      status: {
        authenticated: true,
        user: { username: 'anna', uid: 'uid-1', groups: ['developers', 'system:authenticated'] },
        audiences: [issuer],
      },
    });
    expect(kube.taken()).toEqual([]);
    expect(reviews).toEqual([
      ['reviewer', { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' }],
    ]);
  });

  test('a review of an access token of this server requires a client that accepts JSON', async () => {
    expect((await post(review('of-anna'), { accept: protobuf })).status).toBe(406);
  });
});

describe('other reviews are forwarded to kube-apiserver unchanged', () => {
  // evidence: gateway-token-review-forwarded
  test.each<[string, string | Buffer, Record<string, string>]>([
    ['a token that this server did not issue', review('of-bob'), {}],
    ['a token for another audience', review('of-anna', ['https://other.example']), {}],
    ['a review without a token', review(undefined), {}],
    ['a token that is not a string', review(5), {}],
    ['audiences that are not strings', review('of-anna', [issuer, 5]), {}],
    ['a kind other than TokenReview', review('of-anna', undefined, { kind: 'SubjectAccessReview' }), {}],
    ['a version other than v1', review('of-anna', undefined, { apiVersion: 'authentication.k8s.io/v1beta1' }), {}],
    ['invalid JSON', '{', {}],
    ['an empty body', '', {}],
    ['YAML', 'kind: TokenReview\n', { 'content-type': 'application/yaml' }],
    ['protobuf that ends too early', inProtobuf('of-anna').subarray(0, -1), { 'content-type': protobuf }],
    ['protobuf without its prefix', inProtobuf('of-anna').subarray(4), { 'content-type': protobuf }],
    ['a compressed body', review('of-anna'), { 'content-encoding': 'gzip' }],
    ['a body of more than 64 KiB', review('of-anna').padEnd(64 * 1024 + 1), {}],
  ])(
    'a TokenReview that this server cannot handle is forwarded to kube-apiserver unchanged: %s',
    async (_, body, headers) => {
      kube.serve = (_req, res) => void res.writeHead(201).end('of kube-apiserver');
      expect((await post(body, headers)).text).toBe('of kube-apiserver');
      const [passed, ...more] = kube.taken();
      expect(more).toEqual([]);
      expect(await passed?.body).toBe(body.toString());
    },
  );

  test.each([
    ['the version v1beta1', '/apis/authentication.k8s.io/v1beta1/tokenreviews'],
    ['a name', `${path}/one`],
    ['a namespace', '/apis/authentication.k8s.io/v1/namespaces/n/tokenreviews'],
    ['the deprecated path of watches', '/apis/authentication.k8s.io/v1/watch/tokenreviews'],
    ['another group', '/apis/example.com/v1/tokenreviews'],
  ])('a TokenReview at a path with %s is forwarded to kube-apiserver without being parsed', async (_, at) => {
    kube.serve = (_req, res) => void res.end('of kube-apiserver');
    expect((await post(review('of-anna'), {}, { at })).text).toBe('of kube-apiserver');
    expect([kube.taken().length, reviews, validated]).toEqual([1, [], []]);
  });

  // evidence: gateway-token-review-right
  test('a TokenReview by a caller who is not allowed to create tokenreviews is forwarded to kube-apiserver without being validated', async () => {
    kube.serve = (_req, res) => void res.writeHead(403).end('of kube-apiserver');
    expect((await post(review('of-anna'), {}, { user: 'nobody' })).status).toBe(403);
    expect(validated).toEqual([]);
  });
});

test('a chunked TokenReview of more than 64 KiB gets 413', async () => {
  const body = review('of-anna').padEnd(64 * 1024 + 1);
  const response = await post(body, { 'transfer-encoding': 'chunked' });
  expect([response.status, kube.taken(), validated]).toEqual([413, [], []]);
});

test('a TokenReview that the client aborts gets 400, so that the abort is not logged as a server error', async () => {
  const failure = new Promise((resolve) => (failed = resolve));
  const client = send(
    app,
    `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer reviewer\r\nContent-Length: 9\r\n\r\n{`,
  );
  await allowed.promise;
  client.destroy();
  expect(await failure).toMatchObject({ code: 400, message: 'the request body is incomplete' });
  expect(kube.taken()).toEqual([]);
});
