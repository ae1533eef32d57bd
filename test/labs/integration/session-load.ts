/**
 * People who log in, refresh, log out and come back, at replicas any of which may be killed at any time. What must hold is checked at
 * each step; what did not is kept as a sentence.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, type Answer } from './http.ts';
import { decodeToken } from './jwt.ts';
import { passwordForm, platform, postForm, refreshForm, rememberAnswer, type Tokens } from './login.ts';

export interface Tally {
  logins: number;
  refreshes: number;
  /** Sent to two replicas at once. */
  doubleRefreshes: number;
  revocations: number;
  /** Tokens that were presented again long after. */
  reuses: number;
  /** Requests that had no answer, or 503, and were made again elsewhere. */
  repeated: number;
  /** Milliseconds after the answer to a revocation at which a replica last accepted the token. */
  latestAcceptance: number;
  readonly broken: string[];
}

/** Every request is made again at another replica for so long. Milliseconds; shorter than the grace of a refresh. */
const patience = 15_000;
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
  /** What a refresh token was answered with: never two different ones. */
  readonly #successors = new Map<string, string>();
  /** Access tokens of sessions that were revoked. */
  readonly #revoked: string[] = [];

  constructor(replicas: readonly string[]) {
    this.#replicas = replicas;
  }

  /** One person, until the signal is aborted. */
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
    const answer = await this.#ask((base) => postForm(passwordForm(username), { base }));
    if (answer.status !== 200) {
      this.#broke(`a login was answered ${answer.status} ${answer.text}`);
      return undefined;
    }
    this.tally.logins += 1;
    return answer.json as Tokens;
  }

  async #refresh(tokens: Tokens, twice: boolean): Promise<Tokens | undefined> {
    const { refresh_token: presented } = tokens;
    const ask = (): Promise<Answer> => this.#ask((base) => postForm(refreshForm(presented), { base }));
    const answers = await Promise.all(twice ? [ask(), ask()] : [ask()]);
    this.tally.refreshes += 1;
    if (twice) this.tally.doubleRefreshes += 1;
    for (const answer of answers) {
      if (answer.status !== 200) {
        this.#broke(`a session was lost: its refresh was answered ${answer.status} ${answer.text}`);
        return undefined;
      }
      const { refresh_token: successor } = answer.json as Tokens;
      const before = this.#successors.get(presented);
      if (before !== undefined && before !== successor)
        this.#broke('a refresh token was used twice: it has two successors');
      this.#successors.set(presented, successor);
    }
    return answers.at(-1)?.json as Tokens;
  }

  async #revoke(tokens: Tokens): Promise<undefined> {
    const body = new URLSearchParams({ token: tokens.refresh_token, ...platform }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await this.#ask((base) => call(`${base}/oauth/revoke`, { method: 'POST', body, headers }));
    if (answer.status !== 200) this.#broke(`a revocation was answered ${answer.status} ${answer.text}`);
    this.tally.revocations += 1;
    await this.#expectEnded(tokens);
  }

  /** RFC 9700 section 4.14.2: what was used before ends the session. */
  async #reuse(tokens: Tokens, token: string): Promise<undefined> {
    const answer = await this.#ask((base) => postForm(refreshForm(token), { base }));
    if (answer.status !== 400) this.#broke(`an old refresh token was answered ${answer.status}`);
    this.tally.reuses += 1;
    await this.#expectEnded(tokens);
  }

  /** Asks every replica until it has refused the token, or a second is long over. */
  async #expectEnded({ access_token: token, refresh_token }: Tokens): Promise<void> {
    const revokedAt = performance.now();
    await Promise.all(
      this.#replicas.map(async (base) => {
        for (;;) {
          const begun = performance.now() - revokedAt;
          const status = await statusAt(base, token);
          if (status === 200) this.tally.latestAcceptance = Math.max(this.tally.latestAcceptance, begun);
          if (status === 401) return;
          // One that was killed may take long to come back.
          if (begun > 10_000) return;
          await sleep(20);
        }
      }),
    );
    this.#revoked.push(token);
    const answer = await this.#ask((base) => postForm(refreshForm(refresh_token), { base }));
    if (answer.status !== 400) this.#broke(`the refresh token of a revoked session was answered ${answer.status}`);
  }

  async #lookAtRevoked(): Promise<void> {
    const token = this.#revoked[randomInt(Math.max(1, this.#revoked.length))];
    if (token === undefined) return;
    for (const base of this.#replicas)
      if ((await statusAt(base, token)) === 200) this.#broke(`${base} accepts a token that was revoked long ago`);
  }

  async #expectGood({ access_token: token }: Tokens): Promise<void> {
    const { status } = await this.#ask((base) => call(`${base}${whoami}`, { token }));
    if (status !== 200)
      this.#broke(`a good access token was answered ${status}, of session ${String(decodeToken(token).claims['sid'])}`);
  }

  /** At a replica taken by chance, and at others while it has no answer. */
  async #ask(request: (base: string) => Promise<Answer>): Promise<Answer> {
    const end = performance.now() + patience;
    for (;;) {
      const base = this.#replicas[randomInt(this.#replicas.length)] ?? '';
      try {
        const answer = await request(base);
        rememberAnswer(answer.text);
        if (answer.status < 500 || performance.now() > end) return answer;
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

/** 0 for no answer. */
const statusAt = async (base: string, token: string): Promise<number> => {
  try {
    return (await call(`${base}${whoami}`, { token })).status;
  } catch {
    return 0;
  }
};
