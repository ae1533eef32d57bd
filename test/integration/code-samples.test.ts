/** Code samples of `/docs`: programs in each language send the same requests as the page. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { output } from '../../hack/cluster/exec.ts';
import { goBuildFlags } from '../../hack/cluster/go-modules.ts';
import type { HTTPRequest } from '../../src/docs/explorer/browser/request.ts';
import { codeSamples } from '../../src/docs/explorer/browser/samples.ts';

const environment = { TOKEN: 'a-token', CLIENT_SECRET: '\'secret\' & "more"' };
const hostile = '\'"\\$`!*~#&;|<>(){}[] =@${x}"""\u202E\uFEFF\u{1F600}';
const json = JSON.stringify({ spec: { displayName: hostile } }, undefined, 2);
const request = (method: string, more: Partial<HTTPRequest> = {}): HTTPRequest => ({
  method,
  path: "/x/n'%201?labelSelector=a%3D%22b%22&limit=2",
  headers: [['Accept', 'application/json']],
  withToken: true,
  isStream: false,
  ...more,
});
const withBody = (type: string, body: HTTPRequest['body']): Partial<HTTPRequest> => ({
  headers: [
    ['Accept', '*/*'],
    ['Content-Type', type],
  ],
  body,
});
const form = 'application/x-www-form-urlencoded';

interface Sent {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly token: string | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

const cases: readonly (readonly [title: string, request: HTTPRequest, type: string | undefined, body: string])[] = [
  ['the path, query and token', request('GET'), undefined, ''],
  ['watch=true', request('GET', { isStream: true }), undefined, ''],
  [
    'JSON over several lines',
    request('PUT', withBody('application/json', { kind: 'text', type: 'application/json', text: json })),
    'application/json',
    json,
  ],
  [
    'a form with a secret',
    request(
      'POST',
      withBody(form, {
        kind: 'form',
        fields: [
          { name: 'grant_type', value: hostile },
          { name: 'client_secret', value: 'not in the sample' },
        ],
      }),
    ),
    form,
    new URLSearchParams({ grant_type: hostile, client_secret: environment.CLIENT_SECRET }).toString(),
  ],
  [
    'a body with a password',
    request('PUT', withBody('application/json', { kind: 'input', type: 'application/json', text: 'not in it' })),
    'application/json',
    '{"password":"of standard input"}',
  ],
];

let folder: string;
const sent: Sent[] = [];
const server = createServer((req, res) => {
  void buffer(req).then((body) => {
    const { method, url: path, headers } = req;
    sent.push({ method, path, token: headers.authorization, type: headers['content-type'], body: body.toString() });
    return res.end('the response\n');
  });
});
const file = (language: string, at: number): string =>
  ({
    curl: join(folder, `${at}.sh`),
    TypeScript: join(folder, `${at}.mts`),
    Python: join(folder, `${at}.py`),
    Go: join(folder, `go${at}`, 'main.go'),
  })[language] ?? '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'code-samples-'));
  await mkdir(join(folder, 'programs'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const [at, [, one]] of cases.entries()) {
    await mkdir(join(folder, `go${at}`));
    for (const { language, write } of codeSamples) await writeFile(file(language, at), write(one, origin));
  }
});
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const run: Readonly<Record<string, (at: number) => readonly [program: string, ...args: string[]]>> = {
  curl: (at) => ['sh', file('curl', at)],
  TypeScript: (at) => [process.execPath, '--disable-warning=ExperimentalWarning', file('TypeScript', at)],
  Python: (at) => ['python3', file('Python', at)],
  Go: (at) => [join(folder, 'programs', `go${at}`)],
};

test('the code samples in TypeScript pass the type check', async () => {
  const root = join(import.meta.dirname, '../..');
  const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node'];
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'esnext',
    '--moduleDetection',
    'force',
  ];
  const files = cases.map((_, at) => file('TypeScript', at));
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  expect(await output(process.execPath, [compiler, ...options, ...types, ...files])).toBe('');
});

test('the code samples in Go are formatted and compile', async () => {
  expect(await output('gofmt', ['-l', folder])).toBe('');
  await writeFile(join(folder, 'go.mod'), 'module samples\n');
  // The flags are the same as for other Go programs, so that the compiled standard library is reused.
  await output('go', ['build', ...(await goBuildFlags()), '-o', `${join(folder, 'programs')}/`, './...'], {
    cwd: folder,
    env: { CGO_ENABLED: '0' },
  });
});

describe.each(codeSamples)('the code sample in $language', ({ language }) => {
  test.each(cases.map((one, at) => [...one, at] as const))(
    'the request of the code sample has %s',
    async (_, { method, path }, type, body, at) => {
      sent.length = 0;
      const [program, ...args] = run[language]?.(at) ?? [''];
      const input = body.includes('standard input') ? body : '';
      const printed = await output(program, args, { env: { ...process.env, ...environment }, input });
      expect(printed).toContain('the response');
      const [seen] = sent;
      const isForm = type === form;
      expect(sent).toHaveLength(1);
      expect({
        ...seen,
        body: isForm ? Object.fromEntries(new URLSearchParams(seen?.body)) : seen?.body,
      }).toEqual({
        method,
        path,
        token: 'Bearer a-token',
        type,
        body: isForm ? Object.fromEntries(new URLSearchParams(body)) : body,
      });
    },
  );
});
