/** kubectl's credential plugin against broken and malicious servers. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execute, type Executed } from '../../hack/cluster/exec.ts';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { AuthorizationServer } from '../../src/cli/credential/authorization-server.ts';
import { inTerminal } from '../labs/terminal.ts';

const escape = '\u001B';
type Reply = (res: ServerResponse) => void;
const json =
  (status: number, body: unknown): Reply =>
  (res) => {
    res.statusCode = status;
    res.end(JSON.stringify(body));
  };

let server: Server;
let url: string;
let ca: string;
let replies: Readonly<Record<string, Reply>>;
let requested: string[];
let home: string;
beforeAll(async () => {
  const authority = await createAuthority('nobody-ca');
  const { key, certificate } = await authority.issue({ commonName: 'nobody', server: ['127.0.0.1'] });
  ca = authority.certificate;
  server = createServer({ key, cert: certificate }, (req, res) => {
    requested.push(req.url ?? '');
    replies[req.url ?? '']?.(res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requested = [];
  home = mkdtempSync(join(tmpdir(), 'credential-'));
  writeFileSync(join(home, 'ca.pem'), ca);
});

const post = (maxMilliseconds?: number): Promise<unknown> =>
  new AuthorizationServer(url, ca, maxMilliseconds).post('/x', {});

describe('the credential plugin', () => {
  // evidence: plugin-response-size
  test('the credential plugin stops reading an endless response', async () => {
    replies = {
      '/x': (res) => {
        const write = (): void => {
          while (!res.destroyed && res.write(Buffer.alloc(65_536, 32)));
          if (!res.destroyed) res.once('drain', write);
        };
        write();
      },
    };
    await expect(post()).rejects.toThrow('too large');
  });

  // evidence: plugin-response-timeout
  test.each<[string, Reply]>([
    [
      'arrives byte by byte',
      (res) => {
        const drip = setInterval(() => res.write(' '), 20);
        res.once('close', () => clearInterval(drip));
      },
    ],
    ['never starts', () => undefined],
  ])('the credential plugin stops waiting for a response that %s', async (_, reply) => {
    replies = { '/x': reply };
    await expect(post(200)).rejects.toThrow('no complete response within 0.2 s');
  });

  test.each(['', 'null', '[]', '5', '<html>'])(
    'the credential plugin treats the response body %j as empty, and reports an error status',
    async (text) => {
      replies = { '/x': (res) => void res.end(text) };
      expect(Object.keys((await post()) as object)).toEqual([]);
      replies = { '/x': (res) => void res.writeHead(502).end(text) };
      await expect(post()).rejects.toThrow('the server returned status 502');
    },
  );
});

const cacheFolder = (): string => join(home, '.kube/cache/platform-apiserver');
const commandLine = (): [string, ...string[]] => [
  process.execPath,
  join(import.meta.dirname, '../../src/main.ts'),
  'credential',
  `--server=${url}`,
  `--ca-file=${join(home, 'ca.pem')}`,
];
const run = ([program, ...args]: readonly [string, ...string[]], input = ''): Promise<Executed> =>
  execute(program, args, { env: { HOME: home, NODE_NO_WARNINGS: '1' }, input, timeout: 60_000 });
const credential = (...flags: string[]): Promise<Executed> => run([...commandLine(), ...flags], 'secret\n');
const self = '/kapis/iam.platform.io/v1alpha2/users/~';
const byPassword = (): Promise<Executed> => credential('--login=password', '--username=alice');

describe('the credential plugin', () => {
  // evidence: plugin-terminal-escapes
  test('the credential plugin escapes control characters from the server when it prints them', async () => {
    const device = {
      device_code: 'dc',
      user_code: `${escape}[2JAB`,
      verification_uri: `https://a.example/${escape}[31m\r\n$ `,
      interval: 1,
    };
    const refused = { error: 'access_denied', error_description: `${escape}]52;c;eA==\u0007type your password:` };
    replies = { '/oauth/device_authorization': json(200, device), '/oauth/token': json(400, refused) };
    const output = join(home, 'output');
    const { code, stdout } = await run(inTerminal(commandLine(), output));
    expect({ code, stdout: readFileSync(output, 'utf8'), shown: stdout.replaceAll('\r\n', '\n') }).toEqual({
      code: 1,
      stdout: '',
      shown: [
        'Open https://a.example/\\u{1b}[31m\\u{d}\\u{a}$ ',
        'and authorize the device with the code \\u{1b}[2JAB',
        'credential: \\u{1b}]52;c;eA==\\u{7}type your password:',
        '',
      ].join('\n'),
    });
  });

  test('the credential plugin sends no request if a login is required and there is no terminal', async () => {
    const { code, stderr } = await credential();
    expect({ code, stderr, requested }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`first run this in a terminal: platform-apiserver credential --server=${url} `),
      requested: [],
    });
  });

  test('the credential plugin never sends an empty password', async () => {
    const { code, stderr } = await run([...commandLine(), '--login=password', '--username=alice']);
    expect({ code, stderr, requested }).toEqual({
      code: 1,
      stderr: expect.stringContaining('no password was entered'),
      requested: [],
    });
  });

  test('the credential plugin caches tokens with an extreme lifetime', async () => {
    replies = {
      '/oauth/token': json(200, { access_token: 'a', refresh_token: 'b', expires_in: 1e20 }),
      [self]: json(503, {}),
    };
    const [first, second] = [await byPassword(), await byPassword()];
    expect([first.code, second.code, requested]).toEqual([0, 0, ['/oauth/token', self]]);
    expect(second.stdout).toBe(first.stdout);
  });

  test('the credential plugin rejects malformed tokens and does not cache them', async () => {
    replies = { '/oauth/token': json(200, { access_token: `a\n${escape}`, refresh_token: 'b', expires_in: 3_600 }) };
    expect(await byPassword()).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('unexpected response'),
    });
    expect(readdirSync(home)).toEqual(['ca.pem']);
  });

  test('the credential plugin reports a corrupt cache file and logs in again', async () => {
    replies = {
      '/oauth/token': json(200, { access_token: 'a', refresh_token: 'b', expires_in: 3_600 }),
      [self]: json(200, { spec: {} }),
    };
    await byPassword();
    const file = join(cacheFolder(), readdirSync(cacheFolder())[0] ?? '');
    writeFileSync(file, '{"accessToken":"a","refreshToken":"b","obtainedAt":0,"expiresAt":1e23}');
    const { code, stderr } = await byPassword();
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(`credential: ignoring ${file}: it contains no valid tokens`),
    });
    expect(requested).toHaveLength(4);
  });
});
