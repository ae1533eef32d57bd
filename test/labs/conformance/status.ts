import { expect } from '@jest/globals';
import type { AppResponse } from '../../fakes/request.ts';

/** Expects an error as a metav1.Status with exactly the headers of its code. */
export function expectFailure(response: AppResponse, code: number, reason: string): void {
  expect(response.status).toBe(code);
  expect(response.json()).toMatchObject({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: expect.stringMatching(/./),
    reason,
    code,
  });
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  expect(response.headers['www-authenticate'] !== undefined).toBe(code === 401);
  expect(response.headers.allow !== undefined).toBe(code === 405);
}
