/** metav1.Status: what every refusal is, but for OAuth's endpoints. */
import { expect } from '@jest/globals';
import type { Answer, Status } from './http.ts';

/** Throws unless the answer is a Status of this code and reason, with the headers of every response. */
export function expectStatus(
  answer: Pick<Answer, 'status' | 'headers' | 'text'>,
  code: number,
  reason: string,
): Status {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: code });
  const status = JSON.parse(answer.text) as Status;
  expect(status).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code });
  expect(status.message).not.toBe('');
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
    'audit-id': expect.stringMatching(/^[A-Za-z0-9-]{8,64}$/) as unknown,
  });
  if (code === 401) expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="platform"/);
  if (code === 429 || code === 503) expect(answer.headers['retry-after']).toMatch(/^\d+$/);
  return status;
}
