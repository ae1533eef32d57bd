/** Tests that failed logins with invented names count towards the limits, and that long names are not stored. */
import { describe, expect, test } from '@jest/globals';
import { heapUsed } from '../../fakes/heap.ts';
import { createLab, login, type Fields, type Lab } from '../../labs/oauth.ts';

const mebibyte = 1_024 * 1_024;
/** Returns a name for which V8 uses two bytes per character, because one character is not in Latin-1. */
const longName = (index: number): string => `\u20ac${index}${'x'.repeat(60_000)}`;
const unlimited = { loginLimit: { maxTries: 1_000, perAddress: 100_000, perClient: 100_000 } };

const failWith = async (lab: Lab, fields: Fields, index: number): Promise<number> =>
  (await lab.token({ ...login, password: 'wrong', ...fields }, { from: `198.51.100.${index % 250}` })).status;

describe('a name of 60,000 characters', () => {
  test.each<[string, (name: string) => Fields]>([
    ['user', (username) => ({ username })],
    ['client', (client_id) => ({ client_id })],
  ])('a name of 60,000 characters of an unknown %s is not stored', async (_, fields) => {
    const lab = await createLab(unlimited);
    for (let index = 0; index < 5; index += 1) await failWith(lab, fields(longName(index)), index);
    const before = heapUsed();
    for (let index = 5; index < 205; index += 1) await failWith(lab, fields(longName(index)), index);
    expect(heapUsed() - before).toBeLessThan(4 * mebibyte);
  });

  test('a name of 60,000 characters requires the same work and has the same login limit as any other unknown name', async () => {
    const lab = await createLab();
    const statuses = async (name: string): Promise<number[]> => {
      const all: number[] = [];
      for (let time = 0; time < 4; time += 1) all.push(await failWith(lab, { username: name }, 1));
      return all;
    };
    const work = async (name: string): Promise<[number[], number]> => {
      const before = lab.hashes.verified.length;
      return [await statuses(name), lab.hashes.verified.length - before];
    };
    expect(await work(longName(1))).toEqual(await work('nobody'));
    expect(await failWith(lab, { username: longName(2) }, 1)).toBe(429);
  });
});
