/** `/docs` as served: public on both ports, with a strict content security policy, and cached correctly. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import type { AppResponse, AppRequest } from '../fakes/request.ts';
import { issuer, startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const faces: readonly (readonly [string, (path: string, request?: AppRequest) => Promise<AppResponse>])[] = [
  ['plain HTTP', (path, request) => lab.gateway(path, request)],
  ['TLS', (path, request) => lab.secureGateway(path, request)],
];

/** Returns the paths that a page refers to, resolved as browsers do. */
const referencesOf = (page: string, text: string): string[] =>
  [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address = '']) => {
    const { origin, pathname } = new URL(address, `http://here.example${page}`);
    expect(origin).toBe('http://here.example');
    return pathname;
  });

const assetsOf = async (page = '/docs'): Promise<string[]> => {
  const { text } = await lab.gateway(page);
  return [...new Set(referencesOf(page, text))].filter((path) => path.startsWith('/docs/assets/'));
};

describe.each(faces)('over %s', (_, send) => {
  test.each(['/docs', '/docs/callback', '/docs/callback?code=c&state=s&iss=i'])('%s is a public page', async (path) => {
    const { status, headers, text } = await send(path);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache, private',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'audit-id': expect.any(String),
    });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(text).toContain(`content="${issuer}"`);
  });

  test('the content security policy of /docs allows only scripts, styles and requests of the same origin', async () => {
    const policy = String((await send('/docs')).headers['content-security-policy']).split('; ');
    expect(policy.toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
      "trusted-types 'none'",
    ]);
  });
});

test.each(['/docs', '/docs/callback'])(
  '%s links by relative paths to assets and descriptions that exist',
  async (page) => {
    const { text } = await lab.gateway(page);
    const found = await Promise.all(
      referencesOf(page, text).map(async (path) => [(await lab.gateway(path)).status, path] as const),
    );
    expect(found.length).toBeGreaterThan(5);
    expect(found.filter(([status]) => status !== 200)).toEqual([]);
    // Relative paths also work behind a proxy with a path prefix.
    expect(text).not.toMatch(/(?:href|src)="(?:\/|https?:)/);
    expect(await assetsOf(page)).toEqual(await assetsOf());
  },
);

test('/docs has no inline scripts or styles', async () => {
  const { text } = await lab.gateway('/docs');
  expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]* src=)/);
});

test('/docs preloads every module that another module imports', async () => {
  const paths = await assetsOf();
  const modules = paths.filter((path) => /\.[jt]s$/.test(path));
  expect(modules.length).toBeGreaterThan(5);
  for (const path of modules) {
    const { text } = await lab.gateway(path);
    for (const [, name = ''] of text.matchAll(/^(?:import|export) .*?from '(.*?)';$/gms))
      expect(modules).toContain(new URL(name, `http://here.example${path}`).pathname);
  }
});

test('assets of /docs can be cached forever, since their paths change with their content', async () => {
  for (const path of await assetsOf()) {
    const { status, headers } = await lab.gateway(path);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/(?:css|javascript); charset=utf-8$/),
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      etag: expect.any(String),
    });
    expect(path).toMatch(/^\/docs\/assets\/[\w-]{22}\/[\w-]+\.(?:css|js|ts)$/);
  }
});

test('/docs/ redirects to /docs', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await lab.gateway('/docs/', { method });
    expect([status, new URL(String(headers['location']), 'http://here.example/docs/').pathname]).toEqual([
      301,
      '/docs',
    ]);
  }
});

test('compressed and plain responses for /docs have different ETags', async () => {
  for (const path of ['/docs', ...(await assetsOf()), '/swagger/platform.json']) {
    const plain = (await lab.gateway(path)).headers['etag'];
    const compressed = (await lab.gateway(path, { headers: { 'accept-encoding': 'gzip' } })).headers['etag'];
    expect(compressed).not.toBe(plain);
    for (const [coding, etag, status] of [
      ['gzip', compressed, 304],
      ['gzip', plain, 200],
      ['identity', plain, 304],
      ['identity', compressed, 200],
    ] as const) {
      const headers = { 'accept-encoding': coding, 'if-none-match': String(etag) };
      expect((await lab.gateway(path, { headers })).status).toBe(status);
    }
  }
});

test('/docs and its assets support If-None-Match and HEAD', async () => {
  for (const path of ['/docs', '/docs/callback', ...(await assetsOf())]) {
    const { headers } = await lab.gateway(path);
    const again = await lab.gateway(path, { headers: { 'if-none-match': String(headers['etag']) } });
    expect([again.status, again.text, again.headers['cache-control']]).toEqual([304, '', headers['cache-control']]);
    const head = await lab.gateway(path, { method: 'HEAD' });
    expect([head.status, head.text, head.headers['etag']]).toEqual([200, '', headers['etag']]);
  }
});

test('/docs takes less than 36 KiB gzipped', async () => {
  let size = 0;
  for (const path of ['/docs', ...(await assetsOf())]) {
    const { headers, text } = await lab.gateway(path, { headers: { 'accept-encoding': 'gzip' } });
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(text.length).toBeGreaterThan(0);
    size += Number(headers['content-length']);
  }
  // The browser additionally loads the descriptions, and nothing else.
  expect(size).toBeLessThan(36 * 1024);
  expect(gzipSync((await lab.gateway('/swagger/platform.v3.json')).text).length).toBeLessThan(32 * 1024);
});

test.each([
  '/docs/assets',
  '/docs/assets/x/main.js',
  '/docs/assets/x/..%2f..%2fmodules.js',
  '/docs/assets/%2e%2e/%2e%2e/routes.js',
  '/docs/other',
  '/docs/callback/x',
])('a request for %s returns an error in JSON, since the path is not an asset of /docs', async (path) => {
  const { status, headers } = await lab.gateway(path);
  // Unknown paths require authentication, as everywhere.
  expect([400, 401, 404]).toContain(status);
  expect(headers['content-type']).toMatch(/^application\/json/);
});

test('the ETag of /docs changes with the issuer', async () => {
  const before = (await lab.gateway('/docs')).headers['etag'];
  const configuration = {
    apiVersion: 'config.platform.io/v1alpha1',
    kind: 'PlatformConfiguration',
    authentication: { issuer: 'https://other.example' },
  };
  lab.cluster.put('/api/v1/namespaces/platform-system/configmaps', {
    metadata: { name: 'platform-config' },
    data: { 'platform.yaml': JSON.stringify(configuration) },
  });
  let response = await lab.gateway('/docs', { headers: { 'if-none-match': String(before) } });
  while (response.status === 304)
    response = await lab.gateway('/docs', { headers: { 'if-none-match': String(before) } });
  expect(response.text).toContain('content="https://other.example"');
});
