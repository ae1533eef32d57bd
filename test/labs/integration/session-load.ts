/**
 * Simulates users who log in, refresh, log out and log in again. Any replica can be killed at any time. Invariants are
 * checked at each step, and violations are recorded as sentences.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, type HttpResponse } from './http.ts';
import { decodeToken } from './jwt.ts';
import { passwordForm, platform, postForm, refreshForm, rememberResponse, type Tokens } from './login.ts';

export interface Tally {
  logins: number;
  refreshes: number;
  /** Number of refreshes that were sent to two replicas at once. */
  doubleRefreshes: number;
  revocations: number;
  /** Number of used refresh tokens that were sent again after the grace period. */
  reuses: number;
  /** Number of requests that were retried because they got no response or a 5xx status. */
  repeated: number;
  /** Milliseconds between the response to a revocation and the last time a replica accepted the token. */
  latestAcceptance: number;
  readonly broken: string[];
}

/**
 * Milliseconds for which a request is retried at any replica. This time is shorter than the grace period of a refresh.
 */
const retryTime = 15_000;
const whoami = '/kapis/iam.platform.io/v1alpha2/whoami';

export class SessionLoad {
  readonly tally: Tally = {
    logins: 0,
    refreshes: 0,
    doubleRefreshes: 0,
    revocations: 0,
    reuses: 0,
    repeated: 0,
    latestAcceptance: 0,
    broken: [],
  };
  readonly #replicas: readonly string[];
  /** The new refresh token that replaced each refresh token. A second, different replacement is a violation. */
  readonly #successors = new Map<string, string>();
  /** Access tokens of revoked sessions. */
  readonly #revoked: string[] = [];

  constructor(replicas: readonly string[]) {
    this.#replicas = replicas;
  }

  /** Simulates one user until the signal is aborted. */
  async person(username: string, signal: AbortSignal): Promise<void> {
    let tokens: Tokens | undefined;
    const old: string[] = [];
    while (!signal.aborted) {
      if (tokens === undefined) {
        tokens = await this.#login(username);
        old.length = 0;
        if (tokens === undefined) continue;
      }
      const dice = randomInt(20);
      if (dice < 12) {
        old.push(tokens.refresh_token);
        tokens = await this.#refresh(tokens, dice < 3);
      } else if (dice < 14) tokens = await this.#revoke(tokens);
      else if (dice < 15 && old.length > 2) tokens = await this.#reuse(tokens, old[0] ?? '');
      else await this.#lookAtRevoked();
      if (tokens !== undefined) await this.#expectGood(tokens);
      await sleep(randomInt(50, 300));
    }
  }

  async #login(username: string): Promise<Tokens | undefined> {
    const response = await this.#request((base) => postForm(passwordForm(username), { base }));
    if (response.status !== 200) {
      this.#broke(`a login returned ${response.status} ${response.text}`);
      return undefined;
    }
    this.tally.logins += 1;
    return response.json as Tokens;
  }

  async #refresh(tokens: Tokens, twice: boolean): Promise<Tokens | undefined> {
    const { refresh_token: presented } = tokens;
    const refresh = (): Promise<HttpResponse> => this.#request((base) => postForm(refreshForm(presented), { base }));
    const responses = await Promise.all(twice ? [refresh(), refresh()] : [refresh()]);
    this.tally.refreshes += 1;
    if (twice) this.tally.doubleRefreshes += 1;
    for (const response of responses) {
      if (response.status !== 200) {
        this.#broke(`a session was lost: its refresh returned ${response.status} ${response.text}`);
        return undefined;
      }
      const { refresh_token: successor } = response.json as Tokens;
      const before = this.#successors.get(presented);
      if (before !== undefined && before !== successor)
        this.#broke('a refresh token was used twice: it has two successors');
      this.#successors.set(presented, successor);
    }
    return responses.at(-1)?.json as Tokens;
  }

  async #revoke(tokens: Tokens): Promise<undefined> {
    const body = new URLSearchParams({ token: tokens.refresh_token, ...platform }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const response = await this.#request((base) => call(`${base}/oauth/revoke`, { method: 'POST', body, headers }));
    if (response.status !== 200) this.#broke(`a revocation returned ${response.status} ${response.text}`);
    this.tally.revocations += 1;
    await this.#expectEnded(tokens);
  }

  /** RFC 9700 section 4.14.2: a reused refresh token revokes the session. */
  async #reuse(tokens: Tokens, token: string): Promise<undefined> {
    const response = await this.#request((base) => postForm(refreshForm(token), { base }));
    if (response.status !== 400) this.#broke(`an old refresh token returned ${response.status}`);
    this.tally.reuses += 1;
    await this.#expectEnded(tokens);
  }

  /** Polls every replica until it rejects the token. The polls continue for longer than the allowed second. */
  async #expectEnded({ access_token: token, refresh_token }: Tokens): Promise<void> {
    const revokedAt = performance.now();
    await Promise.all(
      this.#replicas.map(async (base) => {
        for (;;) {
          const started = performance.now() - revokedAt;
          const status = await statusAt(base, token);
          if (status === 200) this.tally.latestAcceptance = Math.max(this.tally.latestAcceptance, started);
          if (status === 401) return;
          // A killed replica may take long to restart.
          if (started > 10_000) return;
          await sleep(20);
        }
      }),
    );
    this.#revoked.push(token);
    const response = await this.#request((base) => postForm(refreshForm(refresh_token), { base }));
    if (response.status !== 400) this.#broke(`the refresh token of a revoked session returned ${response.status}`);
  }

  async #lookAtRevoked(): Promise<void> {
    const token = this.#revoked[randomInt(Math.max(1, this.#revoked.length))];
    if (token === undefined) return;
    for (const base of this.#replicas)
      if ((await statusAt(base, token)) === 200) this.#broke(`${base} accepts a token that was revoked long ago`);
  }

  async #expectGood({ access_token: token }: Tokens): Promise<void> {
    const { status } = await this.#request((base) => call(`${base}${whoami}`, { token }));
    if (status !== 200)
      this.#broke(`a good access token returned ${status}, of session ${String(decodeToken(token).claims['sid'])}`);
  }

  /**
   * Sends a request to a random replica. Sends it again to a random replica until there is a response without a 5xx
   * status.
   */
  async #request(request: (base: string) => Promise<HttpResponse>): Promise<HttpResponse> {
    const end = performance.now() + retryTime;
    for (;;) {
      const base = this.#replicas[randomInt(this.#replicas.length)] ?? '';
      try {
        const response = await request(base);
        rememberResponse(response.text);
        if (response.status < 500 || performance.now() > end) return response;
      } catch (error) {
        if (performance.now() > end) throw error;
      }
      this.tally.repeated += 1;
      await sleep(50);
    }
  }

  #broke(what: string): void {
    this.tally.broken.push(what);
  }
}

/** Returns the status of a request with the token; 0 if there is no response. */
const statusAt = async (base: string, token: string): Promise<number> => {
  try {
    return (await call(`${base}${whoami}`, { token })).status;
  } catch {
    return 0;
  }
};
