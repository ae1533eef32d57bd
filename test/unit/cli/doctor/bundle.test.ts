import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { writeBundle } from '../../../../src/cli/doctor/bundle.ts';
import { Commands } from '../../../../src/cli/doctor/commands.ts';
import { Context } from '../../../../src/cli/doctor/context.ts';
import { Reader } from '../../../../src/cli/doctor/reader.ts';
import type { Cluster, KubeResponse } from '../../../../src/cluster/client/client.ts';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bundle-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const pods = { running: 'Running', silent: 'Running', forbidden: 'Pending', evicted: 'Failed', done: 'Succeeded' };

const respond = (status: number, text: string): KubeResponse => ({
  status,
  headers: {},
  body: Readable.from([Buffer.from(text)]),
});

const event = { kind: 'Event', requestObject: { env: [{ name: 'PASSWORD', value: 'hunter2' }] } };
/** A log of more than 1 MiB. */
const log = ['the oldest line', JSON.stringify(event), ...Array.from({ length: 2 ** 14 }, () => 'x'.repeat(64))]
  .concat('a log line', JSON.stringify(event), '')
  .join('\n');

const client: Pick<Cluster, 'json' | 'stream'> = {
  json<T>(path: string): Promise<T> {
    const items = Object.entries(pods).map(([name, phase]) => ({ metadata: { name }, status: { phase } }));
    return path.includes('/pods?') ? Promise.resolve({ items } as T) : Promise.reject(new KubeError(404, {}));
  },
  async stream(path) {
    if (path.includes('/silent/')) throw new KubeError(0, { message: 'dial tcp: i/o timeout' });
    if (!path.includes('container=platform-apiserver&')) return respond(400, 'a container name must be specified');
    if (path.includes('/forbidden/')) return respond(403, 'pods/log is forbidden');
    return path.endsWith('previous=true') ? respond(400, 'no previous container') : respond(200, log);
  },
};

const context = new Context({
  reader: new Reader(client),
  caller: { server: 'https://localhost', isInPod: false, serviceAccountToken: () => Promise.resolve(undefined) },
  commands: new Commands({ namespace: 'a', kubeconfig: undefined, context: undefined }),
  namespace: 'a',
  service: 'b',
  lookup: () => Promise.resolve(),
  now: () => Date.now(),
});

test('a support bundle contains the log of each pod that has not terminated, or the reason why the log is not available', async () => {
  const file = join(folder, 'bundle.tar.gz');
  await writeBundle(file, {}, context);
  const content = gunzipSync(readFileSync(file)).toString('latin1');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(content.match(/logs\/[\w-]+\.log/g)).toEqual([
    'logs/running.log',
    'logs/silent.log',
    'logs/silent-previous.log',
    'logs/forbidden.log',
    'logs/forbidden-previous.log',
  ]);
  for (const text of ['a log line\n', 'not available: dial tcp', 'not available: 403: pods/log is forbidden\n'])
    expect(content).toContain(text);
});

test('a support bundle contains the newest MiB of a log, in complete lines, and no bodies of audit events', async () => {
  const file = join(folder, 'newest.tar.gz');
  await writeBundle(file, {}, context);
  const content = gunzipSync(readFileSync(file)).toString('latin1');
  const lines = content.slice(content.indexOf('xx')).split('\n');
  expect(content).toContain(`${'x'.repeat(64)}\na log line\n{"kind":"Event"}\n`);
  expect(content).not.toMatch(/the oldest line|hunter2/);
  expect(lines.filter((text) => /^x+$/.test(text) && text.length !== 64)).toEqual([]);
});

test('a support bundle does not replace an existing file or follow a symbolic link', async () => {
  const [file, link, target] = ['existing', 'link', 'target'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, 'before');
  symlinkSync(target, link);
  await expect(writeBundle(file, {}, context)).rejects.toThrow(`${file} already exists`);
  await expect(writeBundle(link, {}, context)).rejects.toThrow(`${link} already exists`);
  expect(readFileSync(file, 'utf8')).toBe('before');
  expect(() => statSync(target)).toThrow('ENOENT');
});
