import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheFile, forgetTokens, readTokens, writeTokens } from '../../../../src/cli/credential/token-cache.ts';

const tokens = { accessToken: 'a', refreshToken: 'r', obtainedAt: 0, expiresAt: 1_800_000_000_000 };
let home: string;
let file: string;
let notes: string[];
afterEach(() => void jest.restoreAllMocks());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cache-'));
  file = cacheFile(['https://a.example'], home);
  notes = [];
});
const read = (): ReturnType<typeof readTokens> => readTokens(file, (text) => void notes.push(text));
const mode = (path: string): number => statSync(path).mode & 0o777;

test('gives back what was put in, alone to its owner, and forgets it', async () => {
  expect(await read()).toBeUndefined();
  await writeTokens(file, tokens);
  expect(await read()).toEqual(tokens);
  expect([mode(file), mode(dirname(file))]).toEqual([0o600, 0o700]);
  await forgetTokens(file);
  expect(await read()).toBeUndefined();
  expect(notes).toEqual([]);
});

test('does not quote a file that is not JSON', async () => {
  await writeTokens(file, tokens);
  writeFileSync(file, 'hunter2', { mode: 0o600 });
  expect(await read()).toBeUndefined();
  expect(notes).toEqual([`${file} cannot be used (it is not JSON): as if it were not there`]);
});

test('leaves no tokens lying about where they cannot be put', async () => {
  mkdirSync(join(file, 'in-the-way'), { recursive: true });
  await expect(writeTokens(file, tokens)).rejects.toThrow(/EISDIR|ENOTEMPTY|EPERM/);
  expect(readdirSync(dirname(file), { recursive: true })).toHaveLength(2);
});

test('that many write at once is whole, and has nothing lying beside it', async () => {
  const all = Array.from({ length: 50 }, (_, n) => ({ ...tokens, accessToken: String(n) }));
  await Promise.all(all.map((one) => writeTokens(file, one)));
  expect(all).toContainEqual(await read());
  expect(readdirSync(dirname(file))).toHaveLength(1);
});

describe('a file', () => {
  test.each([
    ['is empty', ''],
    ['is cut off', '{"accessToken":"a"'],
    ['is null', 'null'],
    ['is a list', '[]'],
    ['lacks a token', JSON.stringify({ ...tokens, refreshToken: undefined })],
    ['has a token that no header carries', JSON.stringify({ ...tokens, accessToken: 'a\nb' })],
    ['ends when no calendar knows', JSON.stringify({ ...tokens, expiresAt: 1e23 })],
    ['never ends', '{"accessToken":"a","refreshToken":"r","obtainedAt":0,"expiresAt":1e999}'],
    ['ends at a text', JSON.stringify({ ...tokens, expiresAt: 'x' })],
  ])('that %s is as good as none, which is said, and is written over', async (_, content) => {
    await writeTokens(file, tokens);
    writeFileSync(file, content);
    expect(await read()).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining(file)]);
    await writeTokens(file, tokens);
    expect(await read()).toEqual(tokens);
  });

  // evidence: plugin-cache-mode
  test('that others may read is as good as none', async () => {
    await writeTokens(file, tokens);
    chmodSync(file, 0o640);
    expect(await read()).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining(file)]);
  });

  // evidence: plugin-cache-link
  test('that is a link is not followed, neither read nor written', async () => {
    const elsewhere = join(home, 'elsewhere');
    writeFileSync(elsewhere, JSON.stringify({ ...tokens, accessToken: 'of another' }), { mode: 0o600 });
    mkdirSync(dirname(file), { recursive: true });
    symlinkSync(elsewhere, file);
    expect(await read()).toBeUndefined();
    expect(notes).toHaveLength(1);
    await writeTokens(file, tokens);
    expect(await read()).toEqual(tokens);
    expect(statSync(elsewhere).size).toBe(JSON.stringify({ ...tokens, accessToken: 'of another' }).length);
  });
});

describe('a folder', () => {
  test('that others may enter is closed to them', async () => {
    mkdirSync(dirname(file), { recursive: true });
    chmodSync(dirname(file), 0o777);
    await writeTokens(file, tokens);
    expect(mode(dirname(file))).toBe(0o700);
  });

  test('that is a link gets no tokens, and what it leads to keeps its mode', async () => {
    const elsewhere = join(home, 'elsewhere');
    mkdirSync(elsewhere);
    chmodSync(elsewhere, 0o755);
    mkdirSync(dirname(dirname(file)), { recursive: true });
    symlinkSync(elsewhere, dirname(file));
    await expect(writeTokens(file, tokens)).rejects.toThrow(/folder of your own/);
    expect([mode(elsewhere), readdirSync(elsewhere)]).toEqual([0o755, []]);
  });

  // evidence: plugin-cache-owner
  test('of somebody else gets no tokens', async () => {
    mkdirSync(dirname(file), { recursive: true });
    jest.spyOn(process, 'getuid').mockReturnValue(12_345);
    await expect(writeTokens(file, tokens)).rejects.toThrow(/folder of your own/);
    expect(existsSync(file)).toBe(false);
  });
});
