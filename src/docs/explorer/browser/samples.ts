/**
 * Code samples: programs that send a request. Tokens and passwords come from environment variables or standard input.
 */
import { isSecret, type Field, type HTTPRequest, type SentBody } from './request.ts';

export interface CodeSample {
  readonly language: string;
  /** Option or environment variable that adds the CA certificate in FILE. */
  readonly trust: string;
  /** `origin`: without a trailing slash. */
  readonly write: (request: HTTPRequest, origin: string) => string;
}

const variable = (name: string): string => name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');

/** Characters that reorder or hide adjacent text, and characters that Go source code must not contain. */
const invisible = /[\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF]/g;
const unicodeEscape = (one: string): string => String.raw`\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Writes a string literal for TypeScript, Python and Go: all three support every JSON escape sequence in use. */
const literal = (text: string): string => JSON.stringify(text.toWellFormed()).replaceAll(invisible, unicodeEscape);

/** Writes text as a multi-line literal, in which only matches of `special` need a backslash. */
const block = (quote: string, text: string, special: RegExp): string =>
  /[^\P{C}\n]/u.test(text) || !text.includes('\n')
    ? literal(text)
    : `${quote}${text.replaceAll(special, String.raw`\$&`)}${quote}`;

const lines = (all: readonly (string | undefined)[]): string =>
  `${all.filter((line) => line !== undefined).join('\n')}\n`;

/**
 * Quotes a text for a shell. Within single quotes, every character but the quote stands for itself (POSIX.1-2024
 * section 2.2.2).
 */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function curlData(body: SentBody | undefined): readonly string[] {
  if (body === undefined) return [];
  if (body.kind === 'input') return ['--data-binary @-'];
  if (body.kind === 'text') return [`--data-raw ${quoted(body.text)}`];
  return body.fields.map((field) => {
    const name = encodeURIComponent(field.name);
    const pair = isSecret(field.name) ? `"${name}=$${variable(field.name)}"` : quoted(`${name}=${field.value}`);
    return `--data-urlencode ${pair}`;
  });
}

const curl = ({ method, path, headers, body, withToken, isStream }: HTTPRequest, origin: string): string =>
  [
    `curl -sS${isStream ? 'N' : ''} ${quoted(`${origin}${path}`)}`,
    ...(method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`]),
    ...(withToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    // curl sets the media type of a form itself.
    ...headers
      .filter(([name]) => body?.kind !== 'form' || name !== 'Content-Type')
      .map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...curlData(body),
  ].join(' \\\n  ');

/** Writes each field with `write`, and reads secrets from the environment. */
const writeFields = (
  fields: readonly Field[],
  fromEnvironment: (variable: string) => string,
  write: (name: string, value: string) => string,
): readonly string[] =>
  fields.map(({ name, value }) =>
    write(literal(name), isSecret(name) ? fromEnvironment(variable(name)) : literal(value)),
  );

function typeScriptBody(body: SentBody): string {
  if (body.kind === 'input') return 'await text(process.stdin)';
  if (body.kind === 'text') return block('`', body.text, /[\\`]|\$\{/g);
  const pairs = writeFields(
    body.fields,
    (name) => `process.env.${name} ?? ""`,
    (name, value) => `    [${name}, ${value}],`,
  );
  return ['new URLSearchParams([', ...pairs, '  ])'].join('\n');
}

const typeScript = ({ method, path, headers, body, withToken, isStream }: HTTPRequest, origin: string): string =>
  lines([
    ...(body?.kind === 'input' ? ['import { text } from "node:stream/consumers";', ''] : []),
    `const response = await fetch(${literal(`${origin}${path}`)}, {`,
    `  method: ${literal(method)},`,
    '  headers: {',
    withToken ? '    "Authorization": `Bearer ${process.env.TOKEN}`,' : undefined,
    ...headers.map(([name, value]) => `    ${literal(name)}: ${literal(value)},`),
    '  },',
    body === undefined ? undefined : `  body: ${typeScriptBody(body)},`,
    '});',
    'if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);',
    isStream
      ? 'for await (const chunk of response.body ?? []) process.stdout.write(chunk);'
      : 'console.log(await response.text());',
  ]);

function pythonBody(body: SentBody): string {
  if (body.kind === 'input') return 'sys.stdin.buffer.read()';
  if (body.kind === 'text') return `${block('"""', body.text, /\\|"(?="")|"$/g)}.encode()`;
  const pairs = writeFields(
    body.fields,
    (name) => `os.environ["${name}"]`,
    (name, value) => `        (${name}, ${value}),`,
  );
  return ['urllib.parse.urlencode([', ...pairs, '    ]).encode()'].join('\n');
}

const python = ({ method, path, headers, body, withToken, isStream }: HTTPRequest, origin: string): string =>
  lines([
    withToken || body?.kind === 'form' ? 'import os' : undefined,
    body?.kind === 'input' ? 'import sys' : undefined,
    body?.kind === 'form' ? 'import urllib.parse' : undefined,
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${literal(`${origin}${path}`)},`,
    `    method=${literal(method)},`,
    '    headers={',
    withToken ? '        "Authorization": "Bearer " + os.environ["TOKEN"],' : undefined,
    ...headers.map(([name, value]) => `        ${literal(name)}: ${literal(value)},`),
    '    },',
    body === undefined ? undefined : `    data=${pythonBody(body)},`,
    ')',
    'with urllib.request.urlopen(request) as response:',
    ...(isStream
      ? ['    for line in response:', '        print(line.decode(), end="", flush=True)']
      : ['    print(response.read().decode())']),
  ]);

function goBody(body: SentBody | undefined): string {
  if (body === undefined) return 'nil';
  if (body.kind === 'input') return 'os.Stdin';
  if (body.kind === 'form') return 'strings.NewReader(form.Encode())';
  // A raw string cannot contain a backtick, because it has no escapes.
  return `strings.NewReader(${body.text.includes('`') ? literal(body.text) : block('`', body.text, /(?!)/g)})`;
}

/** Declares the form that `goBody` encodes. */
const goForm = (fields: readonly Field[]): readonly string[] => [
  '\tform := url.Values{}',
  ...writeFields(
    fields,
    (name) => `os.Getenv("${name}")`,
    (name, value) => `\tform.Set(${name}, ${value})`,
  ),
];

const goCheck = ['\tif err != nil {', '\t\tlog.Fatal(err)', '\t}'];

const go = ({ method, path, headers, body, withToken }: HTTPRequest, origin: string): string =>
  lines([
    'package main',
    '',
    'import (',
    '\t"io"',
    '\t"log"',
    '\t"net/http"',
    body?.kind === 'form' ? '\t"net/url"' : undefined,
    '\t"os"',
    body === undefined || body.kind === 'input' ? undefined : '\t"strings"',
    ')',
    '',
    'func main() {',
    ...(body?.kind === 'form' ? goForm(body.fields) : []),
    `\trequest, err := http.NewRequest(${literal(method)}, ${literal(`${origin}${path}`)}, ${goBody(body)})`,
    ...goCheck,
    withToken ? '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))' : undefined,
    ...headers.map(([name, value]) => `\trequest.Header.Set(${literal(name)}, ${literal(value)})`),
    '\tresponse, err := http.DefaultClient.Do(request)',
    ...goCheck,
    '\tdefer response.Body.Close()',
    '\tif response.StatusCode >= 400 {',
    '\t\tlog.Print(response.Status)',
    '\t}',
    '\tif _, err := io.Copy(os.Stdout, response.Body); err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '}',
  ]);

export const codeSamples: readonly CodeSample[] = [
  { language: 'curl', trust: '--cacert FILE', write: curl },
  { language: 'TypeScript', trust: 'NODE_EXTRA_CA_CERTS=FILE', write: typeScript },
  { language: 'Python', trust: 'SSL_CERT_FILE=FILE', write: python },
  { language: 'Go', trust: 'SSL_CERT_FILE=FILE', write: go },
];
