/** Tests the device code flow (RFC 8628), in which a user authorizes a device without a browser. */
import { describe, expect, test } from '@jest/globals';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { Browser, formIn } from '../../../fakes/browser.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { readJWT } from '../../../fakes/jwt.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { createLab, overtakeNextWrite, type Fields, type Lab } from '../../../labs/oauth.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
const second = 1_000;
const asCLI = { client_id: 'platform-cli' };
const clients = [
  { name: 'platform', secret: 'platform' },
  { name: 'tv', secret: 'tv', grantTypes: [grantType] },
];
const users = [{ username: 'alice', groups: ['a'] }, { username: 'bob' }];

interface Device {
  readonly made: Lab;
  readonly browser: Browser<AppResponse>;
  readonly device: Readonly<Record<string, string>>;
  readonly poll: (fields?: Fields) => Promise<AppResponse>;
}

const lab = (): Promise<Lab> => createLab({ clients, users });
const begin = (made: Lab, fields: Fields = {}, from = '192.0.2.1'): Promise<AppResponse> =>
  made.post('/oauth/device_authorization', { ...asCLI, scope: 'openid profile', ...fields }, { from });

async function waiting(fields: Fields = {}): Promise<Device> {
  const made = await lab();
  const response = await begin(made, fields);
  expect(response.status).toBe(200);
  const device = response.json() as Record<string, string>;
  const poll = (more: Fields = {}): Promise<AppResponse> =>
    made.token({ grant_type: grantType, device_code: device['device_code'], ...asCLI, ...more });
  return { made, device, poll, browser: new Browser((path, options) => sendRequest(made.app, path, options)) };
}

/** Logs in on the device page and enters the user code. Returns the next page. */
async function typeIn({ browser, device }: Device, typed: string = device['user_code'] ?? ''): Promise<AppResponse> {
  const page = await browser.submit(await browser.open('/oauth/device'), {
    username: 'alice',
    password: rightPassword,
  });
  return await browser.submit(page, { user_code: typed });
}

const errorOf = (response: AppResponse): string => `${response.status} ${String(response.json()['error'])}`;

// evidence: password-change-device
test('a device gets no tokens for other audiences while its user must change the password', async () => {
  const all = await waiting();
  const { made, poll } = all;
  await made.putUser('carol');
  const { browser, device } = all;
  const page = await browser.submit(await browser.open('/oauth/device'), {
    username: 'carol',
    password: rightPassword,
  });
  const consentPage = await browser.submit(page, { user_code: device['user_code'] ?? '' });
  expect((await browser.submit(consentPage, { decision: 'allow' })).text).toContain('Device authorized');
  await made.putUser('carol', { passwordChangeRequired: true });
  expect(errorOf(await poll({ audience: 'kubernetes' }))).toBe('400 invalid_target');
  await made.clock.advance(30 * second);
  const own = await poll();
  expect(own.status).toBe(200);
  expect(own.json()).not.toHaveProperty('id_token');
});

// evidence: device-flow
test('a device that a user authorizes gets tokens for the user', async () => {
  const all = await waiting();
  const { made, device, poll, browser } = all;
  expect(device).toEqual({
    device_code: expect.any(String),
    user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
    verification_uri: `${issuer}/oauth/device`,
    verification_uri_complete: `${issuer}/oauth/device?user_code=${device['user_code'] ?? ''}`,
    expires_in: 600,
    interval: 5,
  });
  expect(errorOf(await poll())).toBe('400 authorization_pending');
  const consentPage = await typeIn(all);
  for (const text of [
    '<strong>alice</strong>',
    '<strong>platform-cli</strong>',
    '192.0.2.1',
    device['user_code'] ?? '',
  ])
    expect(consentPage.text).toContain(text);
  await made.clock.advance(30 * second);
  expect((await browser.submit(consentPage, { decision: 'allow' })).text).toContain('Device authorized');
  await allRecorded();
  expect(made.events.at(-1)).toMatchObject({
    user: { username: 'alice' },
    annotations: {
      'oauth.platform.io/client': 'platform-cli',
      'oauth.platform.io/authorization': 'Allowed',
      'oauth.platform.io/session': expect.stringMatching(/./),
    },
  });
  const response = await poll();
  expect(response.status).toBe(200);
  const { access_token, refresh_token, id_token, scope } = response.json();
  expect(scope).toBe('openid profile');
  expect(readJWT(String(access_token)).claims).toMatchObject({
    client_id: 'platform-cli',
    username: 'alice',
    groups: ['a'],
  });
  const identity = readJWT(String(id_token)).claims;
  expect(Number(identity['iat']) - Number(identity['auth_time'])).toBe(30);
  const refreshed = await made.token({ grant_type: 'refresh_token', refresh_token: String(refresh_token), ...asCLI });
  expect(refreshed.status).toBe(200);
});

test('a device gets a different user code if the first code is already in use', async () => {
  const made = await lab();
  let taken = 2;
  made.client.before = ({ method }) => {
    if (method === 'POST' && taken-- > 0) throw new KubeError(409, { reason: 'AlreadyExists', message: 'exists' });
  };
  expect((await begin(made)).json()).toMatchObject({ device_code: expect.any(String), user_code: expect.any(String) });
});

test('opening the device page with the user code in its URL shows the code without authorizing the device', async () => {
  const { browser, device } = await waiting();
  const login = await browser.open(`/oauth/device?user_code=${device['user_code'] ?? ''}`);
  const page = await browser.submit(login, { username: 'alice', password: rightPassword });
  expect(formIn(page.text).fields['user_code']).toBe(device['user_code']);
  expect((await browser.submit(page, {})).text).toContain('value="allow"');
});

test.each(['lower case', 'no hyphen', 'spaces'])('a user code can be entered with %s', async (how) => {
  const all = await waiting();
  const code = all.device['user_code'] ?? '';
  const typed = {
    'lower case': code.toLowerCase(),
    'no hyphen': code.replace('-', ''),
    spaces: ` ${code.replace('-', ' ')} `,
  };
  expect((await typeIn(all, typed[how as keyof typeof typed])).text).toContain('value="allow"');
});

describe('a device', () => {
  // evidence: device-denied
  test('a device that the user denies gets access_denied', async () => {
    const all = await waiting();
    const response = await all.browser.submit(await typeIn(all), { decision: 'deny' });
    expect(response.text).toContain('Device denied');
    expect(errorOf(await all.poll())).toBe('400 access_denied');
  });

  // evidence: device-slow-down
  test('a device that polls too often gets slow_down, and must wait longer each time', async () => {
    const { made, poll } = await waiting();
    await poll();
    expect(errorOf(await poll())).toBe('400 slow_down');
    await made.clock.advance(6 * second);
    expect(errorOf(await poll())).toBe('400 slow_down');
    await made.clock.advance(15 * second);
    expect(errorOf(await poll())).toBe('400 authorization_pending');
  });

  // Each early poll adds 5 s to the interval. Because of network delays, a poll up to 1 s early is accepted.
  test.each<[string, readonly (readonly [wait: number, error: string])[]]>([
    [
      '4 s',
      [
        [0, 'authorization_pending'],
        [4_000, 'authorization_pending'],
        [4_000, 'authorization_pending'],
      ],
    ],
    [
      'less than 4 s',
      [
        [0, 'authorization_pending'],
        [3_999, 'slow_down'],
        [9_000, 'authorization_pending'],
      ],
    ],
    [
      'less than 9 s following a slow_down',
      [
        [0, 'authorization_pending'],
        [0, 'slow_down'],
        [8_999, 'slow_down'],
        [14_000, 'authorization_pending'],
      ],
    ],
    [
      '9 s following a slow_down',
      [
        [0, 'authorization_pending'],
        [0, 'slow_down'],
        [9_000, 'authorization_pending'],
        [8_999, 'slow_down'],
      ],
    ],
  ])('a device that polls after %s gets the response of RFC 8628 section 3.5', async (_, polls) => {
    const { made, poll } = await waiting();
    const errors: unknown[] = [];
    for (const [wait] of polls) {
      await made.clock.advance(wait);
      errors.push((await poll()).json()['error']);
    }
    expect(errors).toEqual(polls.map(([, error]) => error));
  });

  test('a device that must slow down gets the new interval', async () => {
    const { poll } = await waiting();
    await poll();
    expect((await poll()).json()['error_description']).toBe('wait 10 seconds between requests');
    expect((await poll()).json()['error_description']).toBe('wait 15 seconds between requests');
  });

  test('a device gets the same error each time for an unknown code, and nothing is stored for the code', async () => {
    const { poll } = await waiting();
    const forged = { device_code: `${'a'.repeat(32)}.${'A'.repeat(43)}.${'A'.repeat(22)}` };
    const long = { device_code: `\u20ac${'x'.repeat(60_000)}` };
    for (const fields of [forged, forged, long, long]) expect(errorOf(await poll(fields))).toBe('400 invalid_grant');
  });

  // evidence: device-expiry
  test('a device that no user authorizes within ten minutes gets expired_token', async () => {
    const all = await waiting();
    const consentPage = await typeIn(all);
    await all.made.clock.advance(600 * second);
    expect((await all.browser.submit(consentPage, { decision: 'allow' })).status).toBe(400);
    expect(errorOf(await all.poll())).toBe('400 expired_token');
  });

  // evidence: device-code-once
  test('a device gets its tokens once, and the tokens stay valid when the device polls again', async () => {
    const all = await waiting();
    await all.browser.submit(await typeIn(all), { decision: 'allow' });
    const responses = await Promise.all([all.poll(), all.poll()]);
    expect(responses.map(errorOf).toSorted()).toEqual(['200 undefined', '400 slow_down']);
    await all.made.clock.advance(20 * second);
    expect(errorOf(await all.poll())).toBe('400 invalid_grant');
    const token = String(responses.find(({ status }) => status === 200)?.json()['access_token']);
    expect(await all.made.accessTokens.validate(token)).toBeDefined();
  });

  test('a device whose session is changed concurrently gets its tokens instead of slow_down', async () => {
    const all = await waiting();
    await all.browser.submit(await typeIn(all), { decision: 'allow' });
    overtakeNextWrite(all.made);
    expect(errorOf(await all.poll())).toBe('200 undefined');
  });

  // evidence: device-code-binding
  test.each<[string, Fields]>([
    ['of another client', { client_id: 'tv', client_secret: 'tv' }],
    ['that is invalid', { device_code: 'x' }],
    ['with a wrong HMAC', { device_code: `${'a'.repeat(32)}.${'A'.repeat(43)}.${'A'.repeat(22)}` }],
  ])('a device cannot use a code %s', async (_, fields) => {
    const all = await waiting();
    await all.browser.submit(await typeIn(all), { decision: 'allow' });
    expect(errorOf(await all.poll(fields))).toBe('400 invalid_grant');
  });

  test('a device cannot be authorized by a user who was disabled in the meantime', async () => {
    const all = await waiting();
    await all.browser.submit(await typeIn(all), { decision: 'allow' });
    all.made.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] });
    expect(errorOf(await all.poll())).toBe('400 invalid_grant');
  });

  // evidence: device-login-ended
  test('a device cannot be authorized in a login session that was revoked in the meantime', async () => {
    const all = await waiting();
    await all.browser.submit(await typeIn(all), { decision: 'allow' });
    await all.browser.submit(await all.browser.open('/oauth/logout'), {});
    expect(errorOf(await all.poll())).toBe('400 expired_token');
  });

  // evidence: device-client-grant
  test('a device authorization request of a client without the grant gets unauthorized_client', async () => {
    const response = await begin(await lab(), { client_id: 'platform', client_secret: 'platform' });
    expect(errorOf(response)).toBe('400 unauthorized_client');
    expect(errorOf(await begin(await lab(), { client_id: 'nobody' }))).toBe('401 invalid_client');
  });

  // evidence: device-limit
  test('the number of pending device codes is limited per address and in total', async () => {
    const made = await lab();
    for (let count = 0; count < 20; count += 1) expect((await begin(made)).status).toBe(200);
    const refused = await begin(made);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await begin(made, {}, '198.51.100.7')).status).toBe(200);
    await made.clock.advance(600 * second);
    expect((await begin(made)).status).toBe(200);
  });

  // evidence: device-limit-concurrent
  test.each([
    ['one address', () => '192.0.2.1'],
    ['one /64', (index: number) => `2001:db8:1:1::${index.toString(16)}`],
  ])('pending device codes for %s are limited in number, even with concurrent requests', async (_, from) => {
    const made = await lab();
    const responses = await Promise.all(Array.from({ length: 60 }, (__, index) => begin(made, {}, from(index + 1))));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(40);
    expect((await begin(made, {}, from(61))).status).toBe(429);
    expect((await begin(made, {}, '2001:db8:1:2::1')).status).toBe(200);
  });

  test('pending device codes for one /48 are limited to 40, and do not affect other networks', async () => {
    const made = await lab();
    const statuses: number[] = [];
    for (let index = 1; index <= 41; index += 1)
      statuses.push((await begin(made, {}, `2001:db8:1:${index.toString(16)}::1`)).status);
    expect(statuses).toEqual([...Array.from({ length: 40 }, () => 200), 429]);
    expect((await begin(made, {}, '2001:db8:2:1::1')).status).toBe(200);
  });
});

describe('the device page', () => {
  test('the device page shows at most 20 characters of a code in the URL', async () => {
    const { browser } = await waiting();
    const login = await browser.open(`/oauth/device?user_code=${'B'.repeat(100)}`);
    const page = await browser.submit(login, { username: 'alice', password: rightPassword });
    expect(formIn(page.text).fields['user_code']).toBe('B'.repeat(20));
  });

  test('the device page reports an expired code when the code expires before the user decides', async () => {
    const all = await waiting();
    const consentPage = await typeIn(all);
    all.made.client.before = ({ method, path }) => {
      if (method === 'PUT' && path.includes('/sessions/')) throw new KubeError(404, { reason: 'NotFound' });
    };
    const response = await all.browser.submit(consentPage, { decision: 'allow' });
    expect(response.status).toBe(400);
    expect(response.text).toContain('This code has expired');
  });

  // evidence: device-login-required
  test('the device page shows a device only after a login', async () => {
    const { browser, device } = await waiting();
    const page = await browser.open('/oauth/device');
    const { form_token = '' } = formIn(page.text).fields;
    const response = await browser.send('/oauth/device', {
      form_token,
      user_code: device['user_code'] ?? '',
      decision: 'allow',
    });
    expect(response.text).not.toContain('platform-cli');
    expect(formIn(response.text).action).toBe('/oauth/login');
  });

  // evidence: user-code-guesses
  test('the device page limits guesses at user codes', async () => {
    const all = await waiting();
    let page = await typeIn(all, 'BBBB-BBBB');
    expect(page.status).toBe(400);
    expect(page.text).toContain('role="alert"');
    for (let count = 1; count < 5; count += 1) {
      await all.made.clock.advance(60 * second);
      page = await all.browser.submit(page, { user_code: 'not a code' });
    }
    await all.made.clock.advance(60 * second);
    const response = await all.browser.submit(page, { user_code: all.device['user_code'] ?? '' });
    expect(response.status).toBe(429);
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('the device page is still available after failed logins, whatever name was entered', async () => {
    const all = await waiting();
    for (let count = 0; count < 4; count += 1)
      await all.made.token(
        {
          grant_type: 'password',
          username: 'device:alice',
          password: 'x',
          client_id: 'platform',
          client_secret: 'platform',
        },
        { from: '198.51.100.7' },
      );
    expect((await typeIn(all)).status).toBe(200);
  });

  // evidence: device-csrf
  test('the device page accepts no cross-site decision', async () => {
    const all = await waiting();
    const { fields } = formIn((await typeIn(all)).text);
    const response = await all.browser.send(
      '/oauth/device',
      { ...fields, decision: 'allow' },
      { 'sec-fetch-site': 'cross-site' },
    );
    expect(response.status).toBe(403);
    expect(errorOf(await all.poll())).toBe('400 authorization_pending');
  });
});

test('a device authorization request gets 503 after five attempts if every user code is already in use', async () => {
  const made = await lab();
  let writes = 0;
  made.client.before = ({ method }) => {
    if (method !== 'POST') return;
    writes += 1;
    throw writes > 9 ? new Error('too many attempts') : new KubeError(409, { message: 'exists' });
  };
  expect((await begin(made)).status).toBe(503);
  expect(writes).toBe(5);
});
