import { expect, test } from '@jest/globals';
import { sendRequest } from '../../../fakes/request.ts';
import { face } from '../../../labs/http.ts';

const idOf = async (given: string | string[]): Promise<unknown> =>
  (await sendRequest(face().app, '/livez', { headers: { 'audit-id': given } })).headers['audit-id'];

test.each(['12345678', 'c0ffee00-0000-4000-8000-000000000000', 'x'.repeat(64)])(
  'the valid audit ID %s that a client sends is kept',
  async (given) => {
    expect(await idOf(given)).toBe(given);
  },
);

test.each([[''], ['1234567'], ['x'.repeat(65)], ['12345678 9'], ['{"a":12345678}'], [['12345678', '87654321']]])(
  'the invalid audit ID %j that a client sends is replaced',
  async (given) => {
    expect(await idOf(given)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  },
);
