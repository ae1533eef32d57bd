/** Compares rotation, grace period and reuse of refresh tokens on two concurrent replicas with a model. */
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { SessionLifetimes } from '../../../../src/tokens/sessions/lifetimes.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import { lab, login, refresh, type Replica, second, tokens } from '../../../labs/sessions.ts';

/** A minimal model of the specified behaviour of one session. */
class Model {
  readonly chain: string[];
  readonly #lifetimes: SessionLifetimes;
  readonly #createdAt: number;
  #lastUsedAt: number;
  #rotatedAt = -Infinity;
  #ended = false;

  constructor(chosen: SessionLifetimes, first: string, now: number) {
    this.#lifetimes = chosen;
    this.chain = [first];
    this.#createdAt = now;
    this.#lastUsedAt = now;
  }

  /** Returns the current token if `back` is 0, or the previous token if `back` is 1. */
  token(back: number): string {
    return this.chain[Math.max(0, this.chain.length - 1 - back)] ?? '';
  }

  isActive(now: number): boolean {
    const { sessionMaxAge, refreshTokenIdle } = this.#lifetimes;
    return !this.#ended && now < this.#createdAt + sessionMaxAge && now < this.#lastUsedAt + refreshTokenIdle;
  }

  /** Returns the new token, or 'refused'. */
  refresh(token: string, now: number): string {
    if (!this.isActive(now)) return 'refused';
    if (token === this.token(0)) {
      this.#rotatedAt = now;
      this.#lastUsedAt = now;
      this.chain.push(tokens.successor(token));
    } else if (token !== this.token(1) || now - this.#rotatedAt > this.#lifetimes.refreshGrace) {
      this.#ended = true;
      return 'refused';
    }
    return tokens.successor(token);
  }
}

const short: SessionLifetimes = {
  refreshTokenIdle: 30 * second,
  refreshGrace: 2 * second,
  sessionMaxAge: 100 * second,
  accessTokenMaxAge: 50 * second,
};

type Step =
  | { readonly kind: 'refresh'; readonly back: number; readonly replica: number }
  | { readonly kind: 'advance'; readonly milliseconds: number }
  | { readonly kind: 'hold'; readonly replica: number }
  | { readonly kind: 'release' | 'garbage' | 'active'; readonly replica: number };

const whichReplica = fc.integer({ min: 0, max: 1 });
const refreshOf = (back: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constant('refresh' as const), back, replica: whichReplica });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: refreshOf(fc.constant(0)) },
  { weight: 4, arbitrary: refreshOf(fc.constantFrom(1, 1, 1, 2, 3)) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      milliseconds: fc.constantFrom(1, second, 2 * second, 2 * second + 1, 10 * second, 29 * second, 31 * second),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('hold' as const, 'release' as const, 'garbage' as const, 'active' as const),
      replica: whichReplica,
    }),
  },
);

describe('operations on the tokens of a session', () => {
  test('any sequence of operations on the tokens of a session has the results of a simple model, even if a replica lags behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const { clock, replica } = lab(short);
        const replicas: readonly [Replica, Replica] = [await replica(), await replica()];
        const { session, refreshToken } = await replicas[0].sessions.create(login);
        const sid = session.metadata.name;
        const model = new Model(short, refreshToken, clock.now());
        await settle();
        const catchUp = async (): Promise<void> => {
          for (const { client } of replicas) client.releaseWatches();
          await settle();
        };
        const seen: unknown[] = [];
        const expected: unknown[] = [];
        for (const one of steps) {
          if (one.kind === 'advance') {
            await catchUp();
            await clock.advance(one.milliseconds);
            continue;
          }
          const { sessions, client } = replicas[one.replica === 0 ? 0 : 1];
          if (one.kind === 'hold') client.holdWatches();
          else if (one.kind === 'release') await catchUp();
          else if (one.kind === 'garbage') {
            seen.push(await refresh(sessions, `${sid}.${'A'.repeat(43)}.${'A'.repeat(22)}`));
            expected.push('unknown');
          } else if (one.kind === 'active') {
            await catchUp();
            seen.push((await sessions.active(sid)) !== undefined);
            expected.push(model.isActive(clock.now()));
          } else if (one.kind === 'refresh') {
            const token = model.token(one.back);
            const refreshed = await refresh(sessions, token);
            seen.push(typeof refreshed === 'string' ? 'refused' : refreshed.refreshToken);
            expected.push(model.refresh(token, clock.now()));
          }
        }
        for (const { sessions } of replicas) sessions.stop();
        expect(seen).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });
});
