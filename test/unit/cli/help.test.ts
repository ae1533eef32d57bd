import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { informationFor } from '../../../src/cli/help.ts';
import { flagsTable, parseFlags } from '../../../src/config/flags.ts';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
  version: string;
};

describe('the help', () => {
  const help = informationFor(['--help']) ?? '';

  test('shows how each command is called', () => {
    for (const call of ['[flags]', 'check-config FILE', 'hash-password'])
      expect(help).toContain(`platform-apiserver ${call}`);
  });

  test('has one line for each flag, which says what it is and what holds without it', () => {
    for (const [flag] of flagsTable())
      expect(help.split('\n').filter((line) => line.startsWith(`  ${flag} `))).toEqual([
        expect.stringMatching(/^ {2}\S+ +\S.* \(default: .+\)$/),
      ]);
  });

  test('names every flag that the server takes, and no other', () => {
    const parsed = parseFlags(['--namespace=ns'], {});
    const names = Object.keys(parsed).map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
    expect(flagsTable().map(([flag]) => flag)).toEqual(names.map((name) => `--${name}`));
  });

  test.each(['check-config', 'hash-password'])('of %s is about that alone', (command) => {
    const text = informationFor([command, '--help']) ?? '';
    expect(text).toContain(`usage: platform-apiserver ${command}`);
    expect(text).not.toContain('--http-port');
  });
});

describe('a command line', () => {
  test.each([['--help'], ['-h'], ['--namespace=ns', '-h'], ['--nonsense', '--help'], ['hash-password', '-h']])(
    'that asks for help anywhere gets it: %j',
    (...args) => {
      expect(informationFor(args)).toMatch(/^usage: platform-apiserver /);
    },
  );

  test('that asks for the version gets it', () => {
    expect(informationFor(['--version'])).toBe(`platform-apiserver ${version}`);
  });

  test.each([[[]], [['--namespace=ns']], [['--', '--help']], [['check-config', '--', '-h']], [['--config', 'help']]])(
    'that asks for neither gets neither: %j',
    (args) => {
      expect(informationFor(args)).toBeUndefined();
    },
  );
});
