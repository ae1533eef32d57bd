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

test('the token cache returns stored tokens, is readable only by its owner, and deletes tokens', async () => {
  expect(await read()).toBeUndefined();
  await writeTokens(file, tokens);
  expect(await read()).toEqual(tokens);
  expect([mode(file), mode(dirname(file))]).toEqual([0o600, 0o700]);
  await forgetTokens(file);
  expect(await read()).toBeUndefined();
  expect(notes).toEqual([]);
});

test('the token cache reports a file that is not JSON without quoting it', async () => {
  await writeTokens(file, tokens);
  writeFileSync(file, 'hunter2', { mode: 0o600 });
  expect(await read()).toBeUndefined();
  expect(notes).toEqual([`ignoring ${file}: it is not JSON`]);
});

test('the token cache leaves no temporary file when a write fails', async () => {
  mkdirSync(join(file, 'in-the-way'), { recursive: true });
  await expect(writeTokens(file, tokens)).rejects.toThrow(/EISDIR|ENOTEMPTY|EPERM/);
  expect(readdirSync(dirname(file), { recursive: true })).toHaveLength(2);
});

test('a token cache file with concurrent writers contains the tokens of one writer, and no temporary file is left', async () => {
  const all = Array.from({ length: 50 }, (_, n) => ({ ...tokens, accessToken: String(n) }));
  await Promise.all(all.map((one) => writeTokens(file, one)));
  expect(all).toContainEqual(await read());
  expect(readdirSync(dirname(file))).toHaveLength(1);
});

describe('a token cache file', () => {
  test.each([
    ['is empty', ''],
    ['is cut off', '{"accessToken":"a"'],
    ['is null', 'null'],
    ['is a list', '[]'],
    ['lacks a token', JSON.stringify({ ...tokens, refreshToken: undefined })],
    ['has a token that is not a valid header value', JSON.stringify({ ...tokens, accessToken: 'a\nb' })],
    ['expires beyond the range of dates', JSON.stringify({ ...tokens, expiresAt: 1e23 })],
    ['never expires', '{"accessToken":"a","refreshToken":"r","obtainedAt":0,"expiresAt":1e999}'],
    ['has an expiry that is a string', JSON.stringify({ ...tokens, expiresAt: 'x' })],
  ])('a token cache file that %s is ignored with a message, and overwritten', async (_, content) => {
    await writeTokens(file, tokens);
    writeFileSync(file, content);
    expect(await read()).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining(file)]);
    await writeTokens(file, tokens);
    expect(await read()).toEqual(tokens);
  });

  // evidence: plugin-cache-mode
  test('a token cache file that other users can read is ignored', async () => {
    await writeTokens(file, tokens);
    chmodSync(file, 0o640);
    expect(await read()).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining(file)]);
  });

  // evidence: plugin-cache-link
  test('a token cache file that is a symbolic link is not followed for reading or for writing', async () => {
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

describe('a token cache directory', () => {
  test('a token cache directory that other users can enter becomes private', async () => {
    mkdirSync(dirname(file), { recursive: true });
    chmodSync(dirname(file), 0o777);
    await writeTokens(file, tokens);
    expect(mode(dirname(file))).toBe(0o700);
  });

  test('a token cache directory that is a symbolic link gets no tokens, and the mode of its target is unchanged', async () => {
    const elsewhere = join(home, 'elsewhere');
    mkdirSync(elsewhere);
    chmodSync(elsewhere, 0o755);
    mkdirSync(dirname(dirname(file)), { recursive: true });
    symlinkSync(elsewhere, dirname(file));
    await expect(writeTokens(file, tokens)).rejects.toThrow(/folder that you own/);
    expect([mode(elsewhere), readdirSync(elsewhere)]).toEqual([0o755, []]);
  });

  // evidence: plugin-cache-owner
  test('a token cache directory of another user gets no tokens', async () => {
    mkdirSync(dirname(file), { recursive: true });
    jest.spyOn(process, 'getuid').mockReturnValue(12_345);
    await expect(writeTokens(file, tokens)).rejects.toThrow(/folder that you own/);
    expect(existsSync(file)).toBe(false);
  });
});
