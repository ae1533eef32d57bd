/** metav1.Status, the body of every error except those of OAuth endpoints. */
import { expect } from '@jest/globals';
import type { HttpResponse, Status } from './http.ts';

/** Throws unless the response is a Status with this code and reason and the headers of every response. */
export function expectStatus(
  response: Pick<HttpResponse, 'status' | 'headers' | 'text'>,
  code: number,
  reason: string,
): Status {
  expect({ status: response.status, text: response.text }).toMatchObject({ status: code });
  const status = JSON.parse(response.text) as Status;
  expect(status).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code });
  expect(status.message).not.toBe('');
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
    'audit-id': expect.stringMatching(/^[A-Za-z0-9-]{8,64}$/) as unknown,
  });
  if (code === 401) expect(response.headers['www-authenticate']).toMatch(/^Bearer realm="platform"/);
  if (code === 429 || code === 503) expect(response.headers['retry-after']).toMatch(/^\d+$/);
  return status;
}
