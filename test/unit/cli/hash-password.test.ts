import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { hashPassword } from '../../../src/cli/hash-password.ts';
import { UsageError } from '../../../src/config/flags.ts';

const said: string[] = [];
beforeEach(() => {
  for (const method of ['log', 'error'] as const)
    jest.spyOn(console, method).mockImplementation((text: string) => void said.push(`${method}: ${text}`));
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(`stderr: ${String(text)}`) > 0);
});
afterEach(() => {
  jest.restoreAllMocks();
  said.splice(0);
});

/** What a person types; `raw` are the modes that the terminal was set to. */
function terminal(typed: string): { input: PassThrough; raw: boolean[] } {
  const raw: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => void raw.push(mode) });
  input.write(typed);
  return { input, raw };
}

describe('hash-password at a terminal', () => {
  test('asks on stderr, and nothing that is typed is shown, by the terminal or by us', async () => {
    const { input, raw } = terminal('correct horsf\u007Fe\r');
    expect(await hashPassword([], input)).toBe(0);
    expect(said).toEqual(['stderr: Password: ', 'stderr: \n', expect.stringMatching(/^log: \$argon2id\$\S+$/)]);
    expect(raw).toEqual([true, false]);
  });

  test.each([
    ['Ctrl-C', 'correct horse\u0003'],
    ['Ctrl-D', '\u0004'],
    ['an empty line', '\r'],
    ['two lines at once', 'correct horse\rbattery staple\r'],
  ])('%s gives no hash, and the terminal is as before', async (_, typed) => {
    const { input, raw } = terminal(typed);
    expect(await hashPassword([], input)).toBe(2);
    expect(said.filter((line) => line.startsWith('log: '))).toEqual([]);
    expect(raw).toEqual([true, false]);
  });
});

describe('hash-password', () => {
  test.each(['correct horse\nbattery staple', 'correct horse\r\n\r\n', '\ncorrect horse'])(
    'refuses more than one line: %j',
    async (text) => {
      expect(await hashPassword([], new PassThrough().end(text))).toBe(2);
      expect(said).toEqual([expect.stringContaining('one line')]);
    },
  );

  test('does not repeat a password that is given as an argument', async () => {
    await expect(hashPassword(['correct horse'], new PassThrough())).rejects.toThrow(/^(?!.*correct)/);
  });

  test.each([[['foo']], [['--nonsense']]])('takes no argument such as %j', async (args) => {
    await expect(hashPassword(args, new PassThrough())).rejects.toThrow(UsageError);
  });
});
