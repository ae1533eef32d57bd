import { expect } from '@jest/globals';
import type { Answer } from '../../fakes/ask.ts';

/** A refusal as a metav1.Status, with the headers that go with its code and no others. */
export function expectFailure(answer: Answer, code: number, reason: string): void {
  expect(answer.status).toBe(code);
  expect(answer.json()).toMatchObject({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: expect.stringMatching(/./),
    reason,
    code,
  });
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  expect(answer.headers['www-authenticate'] !== undefined).toBe(code === 401);
  expect(answer.headers.allow !== undefined).toBe(code === 405);
}
