/**
 * Measures how long a replica still accepts an access token after another replica has confirmed the revocation of the
 * session.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sendOnce, type Target } from './connection.ts';
import { loginForm, type Users } from './readers.ts';
import { request } from './requests.ts';
import type { Site } from './site.ts';
import { ascending, quantile } from './statistics.ts';

/** Times in milliseconds. */
export interface RevocationFigures {
  readonly p50: number;
  readonly max: number;
}

const samples = 50;
const interval = 2;
const timeout = 60_000;
const whoami = '/kapis/iam.platform.io/v1alpha2/whoami';

export async function measureRevocation(
  site: Site,
  { readers }: Users,
  signal: AbortSignal,
): Promise<RevocationFigures> {
  const { plain } = site.ours;
  const other = await site.another('revocation');
  try {
    const times: number[] = [];
    for (const user of readers.slice(0, samples)) {
      const login = await sendOnce(plain, request('/oauth/token', {}, { form: loginForm(user) }).text);
      const { access_token: token } = JSON.parse(String(login.body)) as { access_token: string };
      await timeUntil(other.faces.plain, token, 200, signal);
      const form = { token, client_id: 'platform', client_secret: 'platform' };
      const { status } = await sendOnce(plain, request('/oauth/revoke', {}, { form }).text);
      if (status !== 200) throw new Error(`a revocation returned ${status}`);
      times.push(await timeUntil(other.faces.plain, token, 401, signal));
    }
    const sorted = ascending(times);
    return { p50: quantile(sorted, 0.5), max: quantile(sorted, 1) };
  } finally {
    await other.stop();
  }
}

/** Returns the milliseconds until a request with the token returns this status. */
async function timeUntil(target: Target, token: string, wanted: number, signal: AbortSignal): Promise<number> {
  const begin = performance.now();
  let last: unknown;
  while (performance.now() - begin < timeout) {
    const { text } = request(whoami, {}, { token });
    const sent = performance.now();
    const response = await sendOnce(target, text).catch((error: unknown) => {
      last = error;
    });
    if (response?.status === wanted) return sent - begin;
    last = response?.status ?? last;
    await sleep(interval, undefined, { signal });
  }
  throw new Error(`the other replica does not return ${wanted} for a token, but ${String(last)}`);
}
