/** How long a replica goes on accepting an access token after another replica has confirmed its revocation. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, type Target } from './connection.ts';
import { loginForm, type Users } from './readers.ts';
import { request } from './requests.ts';
import type { Site } from './site.ts';
import { ascending, quantile } from './statistics.ts';

/** Milliseconds. */
export interface RevocationFigures {
  readonly p50: number;
  readonly max: number;
}

const samples = 50;
const interval = 2;
const patience = 60_000;
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
      const login = await ask(plain, request('/oauth/token', {}, { form: loginForm(user) }).text);
      const { access_token: token } = JSON.parse(String(login.body)) as { access_token: string };
      await answers(other.faces.plain, token, 200, signal);
      const form = { token, client_id: 'platform', client_secret: 'platform' };
      const { status } = await ask(plain, request('/oauth/revoke', {}, { form }).text);
      if (status !== 200) throw new Error(`a revocation was answered ${status}`);
      times.push(await answers(other.faces.plain, token, 401, signal));
    }
    const sorted = ascending(times);
    return { p50: quantile(sorted, 0.5), max: quantile(sorted, 1) };
  } finally {
    await other.stop();
  }
}

/** Milliseconds until a request with the token is answered with this status. */
async function answers(target: Target, token: string, wanted: number, signal: AbortSignal): Promise<number> {
  const begin = performance.now();
  let last: unknown;
  while (performance.now() - begin < patience) {
    const { text } = request(whoami, {}, { token });
    const sent = performance.now();
    const answer = await ask(target, text).catch((error: unknown) => {
      last = error;
    });
    if (answer?.status === wanted) return sent - begin;
    last = answer?.status ?? last;
    await sleep(interval, undefined, { signal });
  }
  throw new Error(`a token is not answered ${wanted} at the other replica, but ${String(last)}`);
}
