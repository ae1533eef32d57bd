import type { Response } from 'express';
import { expect, test } from '@jest/globals';
import { BodyWriter } from '../../../../src/http/response/body-writer.ts';
import { FakeResponse } from '../../../labs/resources.ts';

test('a response body that has ended accepts no more data', async () => {
  const response = new FakeResponse();
  const body = new BodyWriter(response as unknown as Response);
  await body.write(Buffer.from('a'));
  body.end();
  expect(body.closed).toBe(true);
  await body.write(Buffer.from('b'));
  body.end();
  expect(response.text).toBe('a');
});
