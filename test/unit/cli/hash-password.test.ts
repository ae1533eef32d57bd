import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { hashPassword } from '../../../src/cli/hash-password.ts';
import { UsageError } from '../../../src/config/flags.ts';

const printed: string[] = [];
beforeEach(() => {
  for (const method of ['log', 'error'] as const)
    jest.spyOn(console, method).mockImplementation((text: string) => void printed.push(`${method}: ${text}`));
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => printed.push(`stderr: ${String(text)}`) > 0);
});
afterEach(() => {
  jest.restoreAllMocks();
  printed.splice(0);
});

/** A terminal at which one of these texts is typed after each prompt. `raw` records changes of the raw mode. */
function terminal(...typed: string[]): { input: PassThrough; raw: boolean[] } {
  const raw: boolean[] = [];
  const setRawMode = (mode: boolean): void => {
    raw.push(mode);
    if (mode) setImmediate(() => input.write(typed.shift() ?? '\u0004'));
  };
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode });
  return { input, raw };
}

describe('hash-password at a terminal', () => {
  test('hash-password at a terminal rejects two different passwords', async () => {
    const { input, raw } = terminal('correct horse\r', 'correct house\r');
    expect(await hashPassword([], input)).toBe(2);
    expect(printed.at(-1)).toBe('error: hash-password: the passwords do not match');
    expect(raw).toEqual([true, false, true, false]);
  });

  test('hash-password at a terminal prompts twice on stderr, and the password is not shown', async () => {
    const { input, raw } = terminal('correct horsf\u007Fe\r', 'correct horse\r');
    expect(await hashPassword([], input)).toBe(0);
    expect(printed).toEqual([
      'stderr: Password: ',
      'stderr: \n',
      'stderr: Confirm password: ',
      'stderr: \n',
      expect.stringMatching(/^log: \$argon2id\$\S+$/),
    ]);
    expect(raw).toEqual([true, false, true, false]);
  });

  test.each([
    ['Ctrl-C', 'correct horse\u0003'],
    ['Ctrl-D', '\u0004'],
    ['an empty line', '\r'],
    ['two lines at once', 'correct horse\rbattery staple\r'],
  ])('hash-password at a terminal prints no hash after %s as input, and restores the terminal', async (_, typed) => {
    const { input, raw } = terminal(typed);
    expect(await hashPassword([], input)).toBe(2);
    expect(printed.filter((line) => line.startsWith('log: '))).toEqual([]);
    expect(raw).toEqual([true, false]);
  });
});

describe('hash-password', () => {
  test.each(['correct horse\nbattery staple', 'correct horse\r\n\r\n', '\ncorrect horse'])(
    'hash-password rejects more than one line: %j',
    async (text) => {
      expect(await hashPassword([], new PassThrough().end(text))).toBe(2);
      expect(printed).toEqual([expect.stringContaining('single line')]);
    },
  );

  test('hash-password does not print a password that is passed as an argument', async () => {
    await expect(hashPassword(['correct horse'], new PassThrough())).rejects.toThrow(/^(?!.*correct)/);
  });

  test.each([[['foo']], [['--nonsense']]])('hash-password rejects the arguments %j', async (args) => {
    await expect(hashPassword(args, new PassThrough())).rejects.toThrow(UsageError);
  });
});
