/** Metrics count what users and operators do, seen at /metrics. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
let token: string;

beforeAll(async () => {
  lab = await startLab();
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(() => lab.stop());

/** Returns the values of all time series by name and labels. */
async function series(): Promise<ReadonlyMap<string, number>> {
  const { text } = await lab.gateway('/metrics', { headers: { authorization: `Bearer ${token}` } });
  const lines = [...text.matchAll(/^platform_apiserver_(\S+?(?:\{.*\})?) (\S+)$/gm)];
  return new Map(lines.map(([, name = '', value]) => [name, Number(value)]));
}

/** Returns by how much each of the time series grows while the work is done. */
async function growth(names: readonly string[], work: () => Promise<unknown>): Promise<number[]> {
  const before = await series();
  await work();
  const after = await series();
  return names.map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
}

const platform = 'client="platform"';

test('a login is counted with its outcome, and its token with the grant', async () => {
  const names = [
    `logins_total{outcome="LoggedIn",method="password",${platform}}`,
    `tokens_issued_total{grant="password",${platform}}`,
    'password_hash_duration_seconds_count',
  ];
  expect(await growth(names, () => lab.token(login))).toEqual([1, 1, 1]);
});

test('a wrong password is counted as a refused login and a refused token request', async () => {
  const names = [
    `logins_total{outcome="WrongPassword",method="password",${platform}}`,
    `token_requests_refused_total{grant="password",error="invalid_grant",${platform}}`,
    `tokens_issued_total{grant="password",${platform}}`,
  ];
  expect(await growth(names, () => lab.token({ ...login, password: 'wrong horse' }))).toEqual([1, 1, 0]);
});

test('a refresh token that is used again after the grace period is counted as reused', async () => {
  const refresh = (refresh_token: unknown): ReturnType<Lab['token']> =>
    lab.token({
      grant_type: 'refresh_token',
      refresh_token: String(refresh_token),
      client_id: 'platform',
      client_secret: 'platform',
    });
  const { refresh_token: first } = (await lab.token(login)).json();
  const { refresh_token: second } = (await refresh(first)).json();
  await refresh(second);
  const names = [
    'token_reuses_total{token="refresh token"}',
    `token_requests_refused_total{grant="refresh_token",error="invalid_grant",${platform}}`,
  ];
  expect(await growth(names, () => refresh(first))).toEqual([1, 1]);
});

test('the state of the server is reported', async () => {
  const all = await series();
  const versions = [...all].filter(([name]) => name.startsWith('build_info{'));
  expect(versions).toEqual([[expect.stringMatching(/version="\d+\.\d+\.\d+",nodejs="24\./), 1]]);
  expect(all.get('sessions')).toBeGreaterThan(0);
  expect(all.get('connections{listener="http"}')).toBeGreaterThan(0);
  expect(all.get('sent_bytes_total{listener="http"}')).toBeGreaterThan(0);
  expect(all.get('serving_certificate_expiry_timestamp_seconds')).toBeGreaterThan(Date.now() / 1_000);
  expect(all.get('cache_lists_total{resource="sessions"}')).toBeGreaterThan(0);
});
