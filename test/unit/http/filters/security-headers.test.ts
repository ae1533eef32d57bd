import { describe, expect, test } from '@jest/globals';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { face, resourcePath } from '../../../labs/http.ts';

const known = 'https://console.example';

const from = (origin: string, method = 'GET', headers: Readonly<Record<string, string>> = {}): Promise<AppResponse> =>
  sendRequest(face({ settings: { corsAllowedOrigins: [known] } }).app, resourcePath, {
    method,
    headers: { origin, ...headers },
  });

const preflight = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };

describe('a page of a configured origin', () => {
  test('a page of a configured origin is allowed to read responses, but never with the cookies of the browser', async () => {
    const { headers } = await from(known);
    expect(headers).toMatchObject({ 'access-control-allow-origin': known, vary: 'Origin' });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  test('a preflight request for a page of a configured origin gets the allowed methods and headers without authentication', async () => {
    const { status, headers, text } = await from(known, 'OPTIONS', preflight);
    expect([status, text]).toEqual([204, '']);
    expect(headers['access-control-allow-headers']).toContain('Authorization');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  // evidence: authorize-no-cors
  test('a page of a configured origin is not allowed to read the authorization endpoint, which only browsers open', async () => {
    const { app } = face({ settings: { corsAllowedOrigins: [known] } });
    for (const method of ['GET', 'OPTIONS']) {
      const { headers } = await sendRequest(app, '/oauth/authorize', {
        method,
        headers: { origin: known, ...preflight },
      });
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });

  test('a page of a configured origin gets no preflight response to a request without the headers of a preflight', async () => {
    expect((await from(known, 'OPTIONS')).status).toBe(401);
  });
});

test.each([
  'https://evil.example',
  `${known}.evil.example`,
  'https://console.example:444',
  'http://console.example',
  'null',
])('a page of the origin %s is not allowed to read responses', async (origin) => {
  for (const { status, headers } of [await from(origin), await from(origin, 'OPTIONS', preflight)]) {
    expect(status).toBe(401);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    // Caches must not serve this response to the allowed origin.
    expect(headers.vary).toBe('Origin');
  }
});

test('no page of another origin is allowed to read responses unless an origin is configured', async () => {
  const { headers } = await sendRequest(face().app, resourcePath, { headers: { origin: known } });
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
});
