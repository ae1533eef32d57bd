/**
 * Callers choose the text of a request but must not choose the length of messages about it. Each endpoint gets 60,000
 * characters in each string, key, list and parameter; error responses, audit messages and log lines stay short.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEvent } from '../fakes/audit-event.ts';
import type { AppRequest } from '../fakes/request.ts';
import { allRecorded } from '../../src/http/records.ts';
import { logOfLines } from '../fakes/log.ts';
import { startLab, type Lab } from '../labs/conformance/lab.ts';
import { client, clients, loginLimit, password, pod, users } from './hostile/site.ts';
import { hostileStrings, pathOf, type Description, type HostileString } from './hostile/strings.ts';
import { putPod, serveResources } from '../labs/conformance/logging-lab.ts';

const kibibyte = 1_024;
const maxResponse = 8 * kibibyte;
const maxMessage = 4 * kibibyte;
const maxLine = 8 * kibibyte;
/** Length of a value, within the 64 KiB that the server reads of a request. */
const size = 60_000;

const dir = mkdtempSync(join(tmpdir(), 'audit-'));
const auditPath = join(dir, 'audit.log');
const { log, lines } = logOfLines();
let lab: Lab;
let token: string;
let strings: readonly HostileString[];

beforeAll(async () => {
  lab = await startLab({
    log,
    sections: {
      authentication: { issuer: 'https://platform.example', users, clients, loginLimit, multipleLogin: true },
      audit: { policy: { rules: [{ level: 'Metadata' }] }, log: { path: auditPath } },
    },
    prepare(cluster) {
      serveResources(cluster);
      putPod(cluster, pod);
    },
  });
  const fields = { ...client, grant_type: 'password', username: 'alice', password };
  token = String((await lab.token(fields)).json()['access_token']);
  strings = hostileStrings((await lab.gateway('/swagger/platform.v3.json')).json() as unknown as Description);
});
afterAll(async () => {
  await lab.stop();
  rmSync(dir, { recursive: true });
});

const long = 'x'.repeat(size);
const encode = (pairs: readonly (readonly [string, string])[]): string =>
  new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value])).toString();

interface Case {
  readonly what: string;
  readonly path: string;
  readonly request: AppRequest;
}

function nested([first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined || first === '') return value;
  return first === '0' ? [nested(rest, value)] : { [first]: nested(rest, value) };
}

const keys = (count: number): [string, string][] => Array.from({ length: count }, (_, at) => [`key-${at}`, '1']);

/**
 * Returns requests with long input at one place of a request: a long value, a long list, a long key, and many keys.
 */
function casesOf({ frame, place, name }: HostileString): Case[] {
  const { method, path, type, form = {}, query = {} } = frame;
  const isPage = path.startsWith('/oauth/') && form['client_secret'] === undefined;
  const filled = pathOf(path);
  const all = Object.entries(place === 'form' ? form : query);
  const others = all.filter(([one]) => one !== name);
  const requestOf = (what: string, pairs: readonly (readonly [string, string])[], body?: string): Case => ({
    what: `${method} ${path} ${form['grant_type'] ?? ''} ${place} ${name}: ${what}`,
    path: place === 'query' ? `${filled}?${encode(pairs)}` : filled,
    request: {
      method,
      headers: {
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(isPage && path !== '/oauth/authenticate' ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(type === undefined ? {} : { body: body ?? encode(pairs) }),
    },
  });
  if (place === 'json')
    return (
      [
        ['a long value', nested(name.split('.'), long)],
        [
          'a long list',
          nested(
            name.replace(/\.0\.?$/, '').split('.'),
            Array.from({ length: size / 2 }, () => 1),
          ),
        ],
        ['a long list in its place', Array.from({ length: size / 2 }, () => 1)],
        ['a long key', { [long]: 1 }],
        ['many keys', Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`key-${at}`, 1]))],
        ['a long key of controls', { ['\u0001'.repeat(size / 6 - 10)]: 1 }],
      ] as const
    ).map(([what, value]) => requestOf(what, [], JSON.stringify(value)));
  return [
    requestOf('a long value', [...others, [name, long]]),
    requestOf('a long name', [...all, [long, 'x']]),
    requestOf('a long name twice', [...all, [long.slice(size / 2), 'x'], [long.slice(size / 2), 'y']]),
    requestOf('many names', [...all, ...keys(900)]),
    requestOf('many values', [...others, ...Array.from({ length: 900 }, (): [string, string] => [name, 'x,\u0001'])]),
  ];
}

const isTested = ({ place }: HostileString): boolean => ['query', 'form', 'json'].includes(place);

const events = (): AuditEvent[] =>
  readFileSync(auditPath, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);

/** Removes log fields that contain text of the request by design. */
const withoutURL = (line: string): string => {
  const { path: _, ...rest } = JSON.parse(line) as Record<string, unknown>;
  return JSON.stringify(rest);
};

test('error responses, audit messages and log lines stay short whatever a request contains', async () => {
  const tooLong: string[] = [];
  const seen = new Set<string>();
  for (const one of strings.filter(isTested).flatMap(casesOf)) {
    const key = JSON.stringify([one.path, one.request]);
    if (seen.has(key)) continue;
    seen.add(key);
    const { status, text } = await lab.gateway(one.path, one.request);
    if (status >= 400 && text.length > maxResponse) tooLong.push(`${one.what}: ${status}, ${text.length} bytes`);
  }
  expect(tooLong).toEqual([]);
  await allRecorded();
  const messages = events().map(({ responseStatus }) => responseStatus?.message ?? '');
  expect(messages.length).toBeGreaterThan(seen.size);
  expect(messages.filter((message) => message.length > maxMessage)).toEqual([]);
  expect(lines().filter((line) => withoutURL(line).length > maxLine)).toEqual([]);
});
