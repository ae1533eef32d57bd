import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { read, type ShownOperation } from '../../../../../src/docs/explorer/browser/openapi.ts';
import { requestOf, type FilledIn, type HTTPRequest } from '../../../../../src/docs/explorer/browser/request.ts';
import { codeSamples } from '../../../../../src/docs/explorer/browser/samples.ts';

const origin = 'https://platform.example';

const operation = (
  method: string,
  path: string,
  parameters: readonly (readonly [place: string, name: string])[] = [],
): ShownOperation => {
  const described = { operationId: 'it', parameters: parameters.map(([place, name]) => ({ in: place, name })) };
  return read({ paths: { [path]: { [method]: described } } }).operations[0] as ShownOperation;
};

const filledIn = (parameters: readonly string[] = [], more: Partial<FilledIn> = {}): FilledIn => ({
  parameters,
  accept: 'application/json',
  withToken: false,
  ...more,
});

const write = (language: string, request: HTTPRequest): string =>
  codeSamples.find((one) => one.language === language)?.write(request, origin) ?? '';

const special = `'"\\$\`!\n*~#&;|<>(){}[] =@\t\r\u202E\uFEFF`.split('');
const anything = fc.string({ unit: fc.oneof(fc.constantFrom(...special), fc.string()) });
/** Any valid header value. */
const line = anything.map((text) => text.replaceAll(/\p{Cc}/gu, ' ').trim());

const update = operation('put', '/x/{name}', [
  ['path', 'name'],
  ['header', 'X-It'],
  ['query', 'q'],
]);

/** Returns the words that a shell passes to curl. */
const wordsOf = (command: string, env: Readonly<Record<string, string>> = {}): string[] =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], { env, encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

const command = (of: ShownOperation, filled: FilledIn): string => write('curl', requestOf(of, filled));

describe('the sample with curl', () => {
  test('the sample with curl takes the token from a variable', () => {
    const text = command(operation('get', '/x'), filledIn([], { withToken: true }));
    expect(text).toContain('-H "Authorization: Bearer $TOKEN"');
    expect(wordsOf(text, { TOKEN: 'a token' })).toEqual([
      '-sS',
      `${origin}/x`,
      '-H',
      'Authorization: Bearer a token',
      '-H',
      'Accept: application/json',
    ]);
  });

  test.each([
    ['omits', 'get', undefined],
    ['contains', 'get', '{}'],
    ['omits', 'post', '{}'],
    ['contains', 'post', undefined],
    ['contains', 'delete', undefined],
    ['contains', 'put', '{}'],
  ])('the sample with curl %s -X for the method %s with the body %j', (outcome, method, text) => {
    const body = text === undefined ? undefined : ({ kind: 'text', type: 'application/json', text } as const);
    const words = wordsOf(command(operation(method, '/x'), filledIn([], { body })));
    expect(words.includes('-X') && words[words.indexOf('-X') + 1] === method.toUpperCase()).toBe(
      outcome === 'contains',
    );
  });

  test('the sample with curl does not buffer a stream', () => {
    const text = command(operation('get', '/x', [['query', 'watch']]), filledIn(['true']));
    expect(wordsOf(text)[0]).toBe('-sSN');
  });

  test('the sample with curl takes secrets of a form from variables', () => {
    const fields = [
      { name: 'grant_type', value: 'password' },
      { name: 'password', value: 'not to be seen' },
      { name: 'client_secret', value: 'nor this' },
    ];
    const text = command(operation('post', '/oauth/token'), filledIn([], { body: { kind: 'form', fields } }));
    expect(text).not.toMatch(/not to be seen|nor this/);
    expect(wordsOf(text, { PASSWORD: 'p w', CLIENT_SECRET: 's' }).slice(-6)).toEqual([
      '--data-urlencode',
      'grant_type=password',
      '--data-urlencode',
      'password=p w',
      '--data-urlencode',
      'client_secret=s',
    ]);
  });

  test('the sample with curl reads a body with a secret from standard input', () => {
    const body = { kind: 'input', type: 'application/json', text: '{"password":"not to be seen"}' } as const;
    const text = command(operation('put', '/x'), filledIn([], { body }));
    expect(text).not.toContain('not to be seen');
    expect(wordsOf(text).slice(-2)).toEqual(['--data-binary', '@-']);
  });

  test('the sample with curl passes any request through a shell unchanged', () => {
    fc.assert(
      fc.property(anything, line, line, (text, header, value) => {
        const body = { kind: 'text', type: 'application/json', text: text.replaceAll('\0', '') } as const;
        fc.pre(!/^\.{0,2}$/.test(value));
        const sent = requestOf(update, filledIn([value, header, text], { body }));
        const wanted = ['-sS', `${origin}${sent.path}`, '-X', 'PUT'];
        for (const [name, one] of sent.headers) wanted.push('-H', `${name}: ${one}`);
        expect(wordsOf(write('curl', sent))).toEqual([...wanted, '--data-raw', body.text]);
      }),
      { numRuns: 60 },
    );
  });
});

const request = requestOf(
  operation('post', '/x/{name}', [
    ['path', 'name'],
    ['query', 'dryRun'],
  ]),
  filledIn(['n 1', 'All'], {
    withToken: true,
    body: { kind: 'text', type: 'application/json', text: '{\n  "a": "\\d"\n}' },
  }),
);

test.each([
  [
    'TypeScript',
    [
      'const response = await fetch("https://platform.example/x/n%201?dryRun=All", {',
      '  method: "POST",',
      '  headers: {',
      '    "Authorization": `Bearer ${process.env.TOKEN}`,',
      '    "Accept": "application/json",',
      '    "Content-Type": "application/json",',
      '  },',
      '  body: `{',
      String.raw`  "a": "\\d"`,
      '}`,',
      '});',
      'if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);',
      'console.log(await response.text());',
    ],
  ],
  [
    'Python',
    [
      'import os',
      'import urllib.request',
      '',
      'request = urllib.request.Request(',
      '    "https://platform.example/x/n%201?dryRun=All",',
      '    method="POST",',
      '    headers={',
      '        "Authorization": "Bearer " + os.environ["TOKEN"],',
      '        "Accept": "application/json",',
      '        "Content-Type": "application/json",',
      '    },',
      '    data="""{',
      String.raw`  "a": "\\d"`,
      '}""".encode(),',
      ')',
      'with urllib.request.urlopen(request) as response:',
      '    print(response.read().decode())',
    ],
  ],
  [
    'Go',
    [
      'package main',
      '',
      'import (',
      '\t"io"',
      '\t"log"',
      '\t"net/http"',
      '\t"os"',
      '\t"strings"',
      ')',
      '',
      'func main() {',
      '\trequest, err := http.NewRequest("POST", "https://platform.example/x/n%201?dryRun=All", strings.NewReader(`{',
      String.raw`  "a": "\d"`,
      '}`))',
      '\tif err != nil {',
      '\t\tlog.Fatal(err)',
      '\t}',
      '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))',
      '\trequest.Header.Set("Accept", "application/json")',
      '\trequest.Header.Set("Content-Type", "application/json")',
      '\tresponse, err := http.DefaultClient.Do(request)',
      '\tif err != nil {',
      '\t\tlog.Fatal(err)',
      '\t}',
      '\tdefer response.Body.Close()',
      '\tif response.StatusCode >= 400 {',
      '\t\tlog.Print(response.Status)',
      '\t}',
      '\tif _, err := io.Copy(os.Stdout, response.Body); err != nil {',
      '\t\tlog.Fatal(err)',
      '\t}',
      '}',
    ],
  ],
])('the sample in %s is a complete program', (language, program) => {
  expect(write(language, request)).toBe(`${program.join('\n')}\n`);
});

test('the sample in TypeScript sends any request unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(anything, line, line, async (text, header, value) => {
      fc.pre(!/^\.{0,2}$/.test(value));
      const body = { kind: 'text', type: 'application/json', text } as const;
      const sent = requestOf(update, filledIn([value, header, text], { body, withToken: true }));
      const calls: unknown[] = [];
      const fetch = (...call: unknown[]): unknown => calls.push(call) && new Response();
      await runInNewContext(`(async () => {${write('TypeScript', sent)}})()`, {
        fetch,
        process: { env: { TOKEN: 't' } },
        console: { log: () => undefined },
      });
      const headers = Object.fromEntries([['Authorization', 'Bearer t'], ...sent.headers]) as object;
      expect(calls).toEqual([[`${origin}${sent.path}`, { method: 'PUT', headers, body: text.toWellFormed() }]]);
    }),
  );
});

test.each(['TypeScript', 'Python', 'Go'])(
  'the sample in %s shows every character of a malicious default',
  (language) => {
    const body = { kind: 'text', type: 'application/json', text: '{\n"a": "\u202E\u2066\uFEFF"\n}' } as const;
    const text = write(language, requestOf(operation('post', '/x'), filledIn([], { body })));
    expect(text).not.toMatch(/[\u202E\u2066\uFEFF]/);
    expect(text).toContain(String.raw`\u202e\u2066\ufeff`);
  },
);
