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

describe('CORS with allowed origins', () => {
  test('a response to an allowed origin has CORS headers, but does not allow requests with cookies', async () => {
    const { headers } = await from(known);
    expect(headers).toMatchObject({ 'access-control-allow-origin': known, vary: 'Origin' });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  test('a CORS preflight from an allowed origin gets the allowed methods and headers without authentication', async () => {
    const { status, headers, text } = await from(known, 'OPTIONS', preflight);
    expect([status, text]).toEqual([204, '']);
    expect(headers['access-control-allow-headers']).toContain('Authorization');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  // evidence: authorize-no-cors
  test('responses of the authorization endpoint have no CORS headers, even for an allowed origin', async () => {
    const { app } = face({ settings: { corsAllowedOrigins: [known] } });
    for (const method of ['GET', 'OPTIONS']) {
      const { headers } = await sendRequest(app, '/oauth/authorize', {
        method,
        headers: { origin: known, ...preflight },
      });
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });

  test('an OPTIONS request from an allowed origin without the headers of a CORS preflight requires authentication', async () => {
    expect((await from(known, 'OPTIONS')).status).toBe(401);
  });
});

test.each([
  'https://evil.example',
  `${known}.evil.example`,
  'https://console.example:444',
  'http://console.example',
  'null',
])('responses to the origin %s, which is not allowed, have no CORS headers', async (origin) => {
  for (const { status, headers } of [await from(origin), await from(origin, 'OPTIONS', preflight)]) {
    expect(status).toBe(401);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    // Caches must not serve this response to the allowed origin.
    expect(headers.vary).toBe('Origin');
  }
});

test('responses have no CORS headers if the configuration allows no origin', async () => {
  const { headers } = await sendRequest(face().app, resourcePath, { headers: { origin: known } });
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
});
