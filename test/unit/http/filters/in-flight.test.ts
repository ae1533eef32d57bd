import { describe, expect, test } from '@jest/globals';
import { ask, type Answer, type Ask } from '../../../fakes/ask.ts';
import { as, doing, face, resourcePath } from '../lab.ts';

interface Open {
  readonly answer: Promise<Answer>;
  readonly end: () => void;
}

interface Lab {
  /** Sends a request that stays open until `end`. */
  readonly open: (path: string, options: Ask) => Promise<Open>;
  readonly refused: (path: string, options: Ask) => Promise<Answer>;
}

/** A face whose handlers answer when they are released. */
function lab(settings: Readonly<Record<string, unknown>>): Lab {
  const held: (() => void)[] = [];
  const paths = ['/metrics', '/livez', '/readyz', resourcePath];
  const routes = paths.map((path) => doing((_, res) => void held.push(() => void res.end()), path));
  const { app } = face({ settings, routes });
  return {
    open: async (path, options) => {
      const answer = ask(app, path, options);
      const before = held.length;
      while (held.length === before) await new Promise((resolve) => setImmediate(resolve));
      return { answer, end: held.at(-1) ?? (() => undefined) };
    },
    refused: (path, options) => ask(app, path, options),
  };
}

const busy = { status: 429, headers: { 'retry-after': '1' } };
const watch = `${resourcePath}?watch=true`;

describe('at most so many requests at once', () => {
  test('are answered; the next one is 429 until one of them has ended', async () => {
    const { open, refused } = lab({ maxInFlight: 2 });
    const [one, two] = [await open('/metrics', as('alice')), await open('/metrics', as('bob'))];
    const answer = await refused('/metrics', as('carol'));
    expect(answer).toMatchObject(busy);
    expect(answer.json()).toMatchObject({ reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } });
    one.end();
    expect((await one.answer).status).toBe(200);
    const three = await open('/metrics', as('carol'));
    for (const { end } of [two, three]) end();
    expect([(await two.answer).status, (await three.answer).status]).toEqual([200, 200]);
  });

  test('and nobody is asked who it is beyond them', async () => {
    const { open, refused } = lab({ maxInFlight: 1 });
    const one = await open('/metrics', as('alice'));
    expect(await refused('/metrics', as('bad'))).toMatchObject(busy);
    one.end();
    await one.answer;
  });

  test('watches and probes take no place and need none', async () => {
    const { open } = lab({ maxInFlight: 1, maxInFlightPerUser: 1 });
    const all = [
      await open(watch, as('alice')),
      await open(watch, as('alice')),
      await open('/metrics', as('alice')),
      await open(watch, as('alice')),
      await open('/livez', {}),
      await open('/readyz', {}),
    ];
    for (const { end } of all) end();
    expect((await Promise.all(all.map(({ answer }) => answer))).map(({ status }) => status)).toEqual(
      all.map(() => 200),
    );
  });
});

test('one user cannot take all places', async () => {
  const { open, refused } = lab({ maxInFlight: 10, maxInFlightPerUser: 2 });
  const all = [await open('/metrics', as('alice')), await open('/metrics', as('alice'))];
  expect(await refused('/metrics', as('alice'))).toMatchObject(busy);
  all.push(await open('/metrics', as('bob')));
  for (const { end } of all) end();
  await Promise.all(all.map(({ answer }) => answer));
  const again = await open('/metrics', as('alice'));
  again.end();
  expect((await again.answer).status).toBe(200);
});
