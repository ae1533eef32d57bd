import { describe, expect, test } from '@jest/globals';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppRequest } from '../../../fakes/request.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { as, doing, face, resourcePath } from '../../../labs/http.ts';

/** Returns the log lines of one request. */
async function logged(path: string, options: AppRequest = {}): Promise<Record<string, unknown>[]> {
  const { log, lines } = logOfLines();
  const failing = doing((_, res) => void res.writeHead(500).end(), '/readyz');
  const routes = [
    failing,
    doing((_, res) => void res.end(), '/livez'),
    doing((_, res) => void res.end(), resourcePath),
  ];
  await sendRequest(face({ log, routes }).app, path, options);
  await allRecorded();
  return lines().map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('a request is logged in one line with its user, its target and its outcome', async () => {
  const headers = { 'audit-id': 'c0ffee00-1', 'user-agent': 'kubectl/v1.34' };
  expect(await logged(`${resourcePath}?limit=5`, { ...as('alice', headers), from: '192.0.2.7' })).toEqual([
    {
      level: 'info',
      message: 'request',
      time: expect.any(String),
      auditID: 'c0ffee00-1',
      method: 'GET',
      path: `${resourcePath}?limit=5`,
      verb: 'list',
      status: 200,
      seconds: expect.any(Number),
      sourceIP: '192.0.2.7',
      userAgent: 'kubectl/v1.34',
      user: 'alice',
      via: 'token',
    },
  ]);
});

test('a long user agent, and the long URL of an anonymous caller, are truncated in the log', async () => {
  const headers = { 'user-agent': 'u'.repeat(5_000) };
  const [anonymous] = await logged(`${resourcePath}?name=${'a'.repeat(5_000)}`, { headers });
  expect(anonymous).toMatchObject({
    status: 401,
    path: `${resourcePath}?name=${'a'.repeat(5_000)}`.slice(0, 2_048).concat('…'),
    userAgent: 'u'.repeat(1_024),
  });
});

test('the log line of an anonymous request has no user', async () => {
  const [line] = await logged(resourcePath);
  expect(line).toMatchObject({ status: 401 });
  expect(line).not.toHaveProperty('user');
});

test('a health probe is logged only when it fails', async () => {
  expect(await logged('/livez')).toEqual([]);
  expect(await logged('/readyz')).toMatchObject([{ level: 'warn', status: 500 }]);
});

describe('the access log contains no secret', () => {
  // evidence: token-in-query-log
  test.each([
    'access_token',
    'refresh_token',
    'token',
    'id_token_hint',
    'subject_token',
    'password',
    'newPassword',
    'client_secret',
    'client_assertion',
    'code',
    'device_code',
    'user_code',
    'code_verifier',
    'ACCESS_TOKEN',
    'access%5ftoken',
  ])('the access log contains no secret from the query parameter %s', async (name) => {
    const value = name === 'id_token_hint' ? 'eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln' : 'hush-hush';
    for (const query of [`?${name}=${value}`, `?a=1&${name}=${value}&${name}=${value}2`])
      expect(JSON.stringify(await logged(`${resourcePath}${query}`, as('alice')))).not.toContain(value);
  });

  test('the access log contains no secret from a header', async () => {
    const headers = { authorization: 'Bearer hush-hush', cookie: 'hush-hush', 'user-agent': 'x Bearer hush-hush' };
    const lines = await logged(resourcePath, { headers });
    // In these tests a token is the name of its user.
    const written = lines.map((line) => ({ ...line, user: undefined }));
    expect(JSON.stringify(written)).not.toContain('hush-hush');
  });

  test('the access log contains one line for a request whose query contains a line break', async () => {
    const lines = await logged(`${resourcePath}?name=%0A%7B%22level%22%3A%22error%22%7D`, as('alice'));
    expect(lines).toHaveLength(1);
  });
});
