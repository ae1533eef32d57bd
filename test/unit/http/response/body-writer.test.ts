import type { Response } from 'express';
import { expect, test } from '@jest/globals';
import { BodyWriter } from '../../../../src/http/response/body-writer.ts';
import { FakeResponse } from '../../../labs/resources.ts';

test('data that is written to a response body after its end is ignored', async () => {
  const response = new FakeResponse();
  const body = new BodyWriter(response as unknown as Response);
  await body.write(Buffer.from('a'));
  body.end();
  expect(body.closed).toBe(true);
  await body.write(Buffer.from('b'));
  body.end();
  expect(response.text).toBe('a');
});
