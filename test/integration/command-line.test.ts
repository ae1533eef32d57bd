/** Command-line tools, and error messages of the server for a wrong command line. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { platformApiserver } from '../labs/integration/cli.ts';
import { configure, readText } from '../labs/integration/configure.ts';
import { lab } from '../labs/integration/lab.ts';
import { login } from '../labs/integration/login.ts';
import { remember } from '../labs/integration/secrets.ts';

describe('hash-password', () => {
  const password = 'correct horse battery Ω staple';

  test('hash-password prints a hash with which a user of the ConfigMap can log in', async () => {
    remember(password);
    const { code, stdout, stderr } = await platformApiserver(['hash-password'], password);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^\$argon2id\$\S+\n$/);
    const restore = await configure(({ authentication }) => {
      authentication.users.push({ username: 'hashed-by-hand', passwordHash: stdout.trim() });
    });
    expect(await login('hashed-by-hand', undefined, password)).toHaveProperty('access_token');
    await restore();
  });

  test('hash-password ignores the trailing newline of echo and adds a random salt', async () => {
    const [first, second] = await Promise.all([
      platformApiserver(['hash-password'], 'the same password\n'),
      platformApiserver(['hash-password'], 'the same password\n'),
    ]);
    expect(first.code).toBe(0);
    expect(first.stdout).not.toBe(second.stdout);
  });

  test.each([
    ['too short', 'seven 7'],
    ['empty', ''],
    ['too long', 'x'.repeat(1_025)],
  ])('hash-password rejects a password that is %s with a message', async (_, text) => {
    const { code, stdout, stderr } = await platformApiserver(['hash-password'], text);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('8 characters');
    expect(stderr).not.toContain('    at ');
  });
});

function file(name: string, text: string): string {
  const path = join(lab().dir, name);
  writeFileSync(path, text);
  return path;
}

describe('help', () => {
  test.each([
    [['--help'], '--http-port'],
    [['-h'], '--http-port'],
    [['check-config', '--help'], 'FILE'],
    [['credential', '--help'], '--ca-file'],
    [['hash-password', '-h'], 'standard input'],
    [['version'], 'platform-apiserver '],
    [['--version'], 'platform-apiserver '],
  ])(
    'the program prints help or the version to stdout and exits with 0 for the command line %j',
    async (args, word) => {
      const { code, stdout, stderr } = await platformApiserver(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain(word);
    },
  );
});

describe('check-config', () => {
  let valid = '';
  beforeAll(async () => {
    valid = await readText();
  });

  test("check-config accepts the chart's ConfigMap", async () => {
    const { code, stdout } = await platformApiserver(['check-config', file('valid.yaml', valid)]);
    expect(code).toBe(0);
    expect(stdout).toContain('is valid');
  });

  test('check-config reads standard input when the file is "-"', async () => {
    const { code, stdout } = await platformApiserver(['check-config', '-'], valid);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'standard input is valid\n' });
  });

  test('check-config reports every problem with the path of the field', async () => {
    const wrong = `
apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: http://insecure.example.com
  accessTokenMaxAge: soon
  users:
    - username: Admin
      passwordHash: plain text
    - username: twice
      passwordRef: {name: a, key: b}
    - username: twice
      passwordRef: {name: a, key: b}
      groups: [system:masters]
  clients:
    - name: nothing
requests: {maxInFlight: 0}
surprise: true
`;
    const { code, stdout, stderr } = await platformApiserver(['check-config', file('wrong.yaml', wrong)]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    for (const path of [
      'authentication.issuer',
      'authentication.accessTokenMaxAge',
      'authentication.users[0] (Admin).username',
      'authentication.users[0] (Admin).passwordHash',
      'authentication.users[2] (twice).groups[0]',
      'authentication.clients[0] (nothing)',
      'requests.maxInFlight',
      'surprise',
    ])
      expect(stderr).toContain(`${path}: `);
    expect(stderr).not.toContain('    at ');
  });

  test.each([
    ['invalid YAML', 'a: [', 1],
    ['a list at the top level', '- a\n', 1],
    ['no content', '', 1],
    ['the same key twice', 'kind: a\nkind: b\n', 1],
    [
      'too many aliases',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
        .split('')
        .map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[at]}`).join(',')}]`)
        .join('\n')}\n`,
      1,
    ],
  ])('check-config rejects a file with %s', async (_, text, expected) => {
    const { code, stderr } = await platformApiserver(['check-config', file('refused.yaml', text)]);
    expect(code).toBe(expected);
    expect(stderr).toContain('refused.yaml: ');
    expect(stderr).not.toContain('    at ');
  });

  test('check-config reports a file that does not exist', async () => {
    const missing = await platformApiserver(['check-config', join(lab().dir, 'nowhere.yaml')]);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain('nowhere.yaml');
  });
});

describe('a wrong command line', () => {
  test.each([
    [['--nonsense'], 'nonsense'],
    [['--http-port=x', '--namespace=a'], 'http-port'],
    [['--http-port=70000', '--namespace=a'], 'http-port'],
    [['--tls-cert-file=a', '--namespace=a'], 'tls-private-key-file'],
    [['--config=a', '--config-map=b', '--namespace=a'], 'config'],
    [['--http-port=1'], 'namespace'],
    [['nonsense'], 'unknown command "nonsense"'],
    [['version', 'nonsense'], 'version'],
    [['check-config'], 'FILE'],
    [['check-config', '--nonsense'], 'nonsense'],
    [['hash-password', 'nonsense'], 'hash-password'],
  ])(
    'the program exits with 2 and prints the problem and a hint at --help for the wrong command line %j',
    async (args, named) => {
      const { code, stderr } = await platformApiserver(args);
      expect(code).toBe(2);
      expect(stderr).toContain(named);
      expect(stderr).toMatch(/see platform-apiserver --help\n$/);
      expect(stderr).not.toContain('    at ');
    },
  );

  const anyPort = ['--http-port=0', '--https-port=0', '--aggregated-port=0'];

  test.each([
    ['no kubeconfig', '--kubeconfig: cannot read /nowhere/at/all', () => '/nowhere/at/all', []],
    ['a kubeconfig without a cluster', '--kubeconfig: the kubeconfig', () => file('empty.kubeconfig', '{}'), []],
    // The server's identity is allowed to read only one ConfigMap.
    ['a missing ConfigMap', 'nowhere', () => lab().kubeconfig, ['--config-map=nowhere', ...anyPort]],
    [
      'a missing configuration file',
      '--config: cannot read /nowhere/at/all',
      () => lab().serverKubeconfig,
      ['--config=/nowhere/at/all', ...anyPort],
    ],
  ])('a server with %s exits with 1 and reports the problem in its log', async (_, message, kubeconfig, args) => {
    const { code, stdout } = await platformApiserver([
      '--namespace=platform-system',
      `--kubeconfig=${kubeconfig()}`,
      ...args,
    ]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      level: 'error',
      error: { message: expect.stringContaining(message) },
    });
  });
});
