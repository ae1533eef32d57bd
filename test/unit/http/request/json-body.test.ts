import { expect, test } from '@jest/globals';
import { jsonBody } from '../../../../src/http/request/json-body.ts';
import { object, text } from '../../../../src/http/schema.ts';
import { send, sendRequest } from '../../../fakes/request.ts';
import { doing, face } from '../../../labs/http.ts';

const path = '/kapis/version';
const body = jsonBody(object({ name: text }));

// An error without a status would cause 500 and a log line with the level error.
test('a client that disconnects during a JSON body causes an error with the status 400', async () => {
  const started = Promise.withResolvers<void>();
  const result = Promise.withResolvers<unknown>();
  const { app } = face({
    routes: [
      doing(
        async (req, _res, context) => {
          const reading = body.read(req, context);
          started.resolve();
          result.resolve(await reading.catch((error: unknown) => error));
        },
        path,
        'post',
      ),
    ],
  });
  const client = send(
    app,
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
  );
  await started.promise;
  client.destroy();
  expect(await result.promise).toMatchObject({ code: 400, message: 'the request body is incomplete' });
});

test('a request with a JSON body of more than 64 KiB gets 413', async () => {
  const { app } = face({
    routes: [doing(async (req, _res, context) => void (await body.read(req, context)), path, 'post')],
  });
  const headers = { 'content-type': 'application/json' };
  const content = JSON.stringify({ name: 'x'.repeat(4 * 1024 * 1024) });
  expect((await sendRequest(app, path, { method: 'POST', headers, body: content })).status).toBe(413);
});
