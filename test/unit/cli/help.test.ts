import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { informationFor, rejectUnknownCommand } from '../../../src/cli/help.ts';
import { credentialFlagsTable, flagsTable, parseFlags, UsageError } from '../../../src/config/flags.ts';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
  version: string;
};

describe('the help', () => {
  const help = informationFor(['--help']) ?? '';

  test('the help of platform-apiserver shows the usage of each command', () => {
    expect(help).toContain('Usage: platform-apiserver [flags]\n');
    for (const call of ['check-config FILE', 'credential [flags]', 'doctor [flags]', 'hash-password', 'version'])
      expect(help).toMatch(new RegExp(String.raw`^ {2}${call.replaceAll(/[[\]]/g, String.raw`\$&`)} +\S`, 'm'));
  });

  test('the help of platform-apiserver lists each flag once, with its meaning and default', () => {
    const text = help.replaceAll(/\s+/g, ' ');
    for (const [flag, meaning] of flagsTable()) {
      expect(help.split('\n').filter((line) => line.split(' ').includes(flag))).toHaveLength(1);
      expect(text).toContain(`${flag} ${meaning}`);
      expect(meaning).toMatch(/\S \(default: .+\)$/);
    }
  });

  test.each(['', 'check-config', 'credential', 'hash-password', 'version'])(
    'the help fits into 80 columns for the command %j',
    (command) => {
      const text = informationFor([...(command === '' ? [] : [command]), '--help']) ?? '';
      expect(text.split('\n').filter((line) => line.length > 80 || line.trimEnd() !== line)).toEqual([]);
    },
  );

  test('the help of platform-apiserver lists exactly the flags that the server accepts', () => {
    const parsed = parseFlags(['--namespace=ns'], {});
    const names = Object.keys(parsed).map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
    expect(flagsTable().map(([flag]) => flag.replace(/=.*/, ''))).toEqual(names.map((name) => `--${name}`));
  });

  test('the help of the credential command lists the flags of that command', () => {
    const text = (informationFor(['credential', '--help']) ?? '').replaceAll(/\s+/g, ' ');
    for (const [flag, meaning] of credentialFlagsTable()) expect(text).toContain(`${flag} ${meaning}`);
  });

  test.each(['check-config', 'hash-password', 'version'])(
    'the help of the command %s covers only that command',
    (command) => {
      const text = informationFor([command, '--help']) ?? '';
      expect(text).toContain(`Usage: platform-apiserver ${command}`);
      expect(text).not.toContain('--http-port');
    },
  );
});

describe('a command line', () => {
  test.each([['--help'], ['-h'], ['--namespace=ns', '-h'], ['--nonsense', '--help'], ['hash-password', '-h']])(
    'a command line with a request for help in any position prints the help: %j',
    (...args) => {
      expect(informationFor(args)).toMatch(/^Usage: platform-apiserver /);
    },
  );

  test('a command line with a request for the version prints the version', () => {
    expect(informationFor(['--version'])).toBe(`platform-apiserver ${version}`);
  });

  test.each([[[]], [['--namespace=ns']], [['--', '--help']], [['check-config', '--', '-h']], [['--config', 'help']]])(
    'a command line without a flag for help or version prints neither: %j',
    (args) => {
      expect(informationFor(args)).toBeUndefined();
    },
  );

  test.each([
    ['versoin', 'unknown command "versoin"; did you mean "version"?'],
    ['serve', 'unknown command "serve"; the commands are check-config, credential, doctor, hash-password, version'],
    ['toString', 'unknown command "toString"; the commands are '],
  ])('a command line with the unknown command %s is rejected', (command, message) => {
    expect(() => rejectUnknownCommand([command])).toThrow(UsageError);
    expect(() => rejectUnknownCommand([command])).toThrow(message);
  });

  test.each([[[]], [['--namespace', 'ns']], [['-x']]])('a command line without a command is accepted: %j', (args) => {
    expect(() => rejectUnknownCommand(args)).not.toThrow();
  });
});
