/** kubectl's credential plugin at a server that is broken, or nobody's friend. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execute, type Executed } from '../../hack/cluster/exec.ts';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { AuthorizationServer } from '../../src/cli/credential/authorization-server.ts';

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
let asked: string[];
let home: string;
beforeAll(async () => {
  const authority = await createAuthority('nobody-ca');
  const { key, certificate } = await authority.issue({ commonName: 'nobody', server: ['127.0.0.1'] });
  ca = authority.certificate;
  server = createServer({ key, cert: certificate }, (req, res) => {
    asked.push(req.url ?? '');
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
  asked = [];
  home = mkdtempSync(join(tmpdir(), 'credential-'));
  writeFileSync(join(home, 'ca.pem'), ca);
});

const post = (longest?: number): Promise<unknown> => new AuthorizationServer(url, ca, longest).post('/x', {});

describe('an answer', () => {
  // evidence: plugin-response-size
  test('that does not end is not read to its end', async () => {
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
      'drips',
      (res) => {
        const drip = setInterval(() => res.write(' '), 20);
        res.once('close', () => clearInterval(drip));
      },
    ],
    ['never begins', () => undefined],
  ])('that %s is waited for only so long', async (_, reply) => {
    replies = { '/x': reply };
    await expect(post(200)).rejects.toThrow('no whole answer within 0.2 s');
  });

  test.each(['', 'null', '[]', '5', '<html>'])('of %j says nothing', async (text) => {
    replies = { '/x': (res) => void res.end(text) };
    expect(Object.keys((await post()) as object)).toEqual([]);
    replies = { '/x': (res) => void res.writeHead(502).end(text) };
    await expect(post()).rejects.toThrow('the server answered 502');
  });
});

const cacheFolder = (): string => join(home, '.kube/cache/platform-apiserver');
const credential = (...flags: string[]): Promise<Executed> =>
  execute(
    process.execPath,
    [
      join(import.meta.dirname, '../../src/main.ts'),
      'credential',
      `--server=${url}`,
      `--ca-file=${join(home, 'ca.pem')}`,
      ...flags,
    ],
    { env: { HOME: home, NODE_NO_WARNINGS: '1' }, input: 'secret\n', timeout: 60_000 },
  );
const self = '/kapis/iam.platform.io/v1alpha2/users/~';
const byPassword = (): Promise<Executed> => credential('--login=password', '--username=alice');

describe('the plugin', () => {
  // evidence: plugin-terminal-escapes
  test('shows what steers terminals, and does not do it', async () => {
    const device = {
      device_code: 'dc',
      user_code: `${escape}[2JAB`,
      verification_uri: `https://a.example/${escape}[31m\r\n$ `,
      interval: 1,
    };
    const refused = { error: 'access_denied', error_description: `${escape}]52;c;eA==\u0007type your password:` };
    replies = { '/oauth/device_authorization': json(200, device), '/oauth/token': json(400, refused) };
    const { code, stdout, stderr } = await credential();
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: [
        'Open https://a.example/\\u{1b}[31m\\u{d}\\u{a}$ ',
        'and let in the device that shows \\u{1b}[2JAB',
        'credential: \\u{1b}]52;c;eA==\\u{7}type your password:',
        '',
      ].join('\n'),
    });
  });

  test('uses tokens of however long a life, now and at the next call', async () => {
    replies = {
      '/oauth/token': json(200, { access_token: 'a', refresh_token: 'b', expires_in: 1e20 }),
      [self]: json(503, {}),
    };
    const [first, second] = [await byPassword(), await byPassword()];
    expect([first.code, second.code, asked]).toEqual([0, 0, ['/oauth/token', self]]);
    expect(second.stdout).toBe(first.stdout);
  });

  test('keeps nothing of tokens that are none', async () => {
    replies = { '/oauth/token': json(200, { access_token: `a\n${escape}`, refresh_token: 'b', expires_in: 3_600 }) };
    expect(await byPassword()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no server of') });
    expect(readdirSync(home)).toEqual(['ca.pem']);
  });

  test('goes on over a cache that is broken, and says so', async () => {
    replies = {
      '/oauth/token': json(200, { access_token: 'a', refresh_token: 'b', expires_in: 3_600 }),
      [self]: json(200, { spec: {} }),
    };
    await byPassword();
    const file = join(cacheFolder(), readdirSync(cacheFolder())[0] ?? '');
    writeFileSync(file, '{"accessToken":"a","refreshToken":"b","obtainedAt":0,"expiresAt":1e23}');
    const { code, stderr } = await byPassword();
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`credential: ${file} has no tokens`) });
    expect(asked).toHaveLength(4);
  });
});
