/** The whole server over a real log store to which something happens. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import type { RunningStore } from '../../../hack/log-stores/running.ts';
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';
import type { Message } from '../../client/message.ts';
import type { Answer } from '../../fakes/ask.ts';
import { startLab, type Lab } from '../../labs/conformance/lab.ts';
import { as, prepareLogs } from '../../labs/conformance/logging-lab.ts';
import { expectFailure } from '../../labs/conformance/status.ts';
import { at, corpus, createRecords } from './corpus.ts';

const path = '/kapis/logging.platform.io/v1alpha2/logs';
const time = `start_time=${corpus.start}&end_time=${corpus.end}`;
const large = 1_500_000;
/** No more of them are in an answer that the server takes at once. */
const records: readonly LogRecord[] = [
  ...createRecords(30_000),
  ...Array.from({ length: 30 }, (_, index) => ({
    time: at(corpus.edge + 20_000 + index, 0),
    namespace: 'large',
    pod: 'large-0',
    container: 'app',
    log: `${index} ${'x'.repeat(large)}`,
  })),
];

interface Facts {
  /** The section `logging` of the configuration. */
  readonly section: (url: string) => object;
  /** With these records. */
  readonly start: (dir: string, port: number, records: readonly LogRecord[]) => Promise<RunningStore>;
  /** How often it was asked. */
  readonly asked: (url: string) => Promise<number>;
}

export function faultsSuite(name: string, { section, start, asked }: Facts): void {
  /** Of each start; the server may be another user, who sees nothing that is in a folder of ours. */
  const dirs: string[] = [];
  let port: number;
  let store: RunningStore;
  let lab: Lab;

  async function begin(): Promise<RunningStore> {
    const dir = await mkdtemp(join(tmpdir(), 'platform-apiserver-real-faults-'));
    dirs.push(dir);
    return await start(dir, port, records);
  }

  beforeAll(async () => {
    port = await freePort(29_000 + seed(name, 1_000));
    store = await begin();
    lab = await startLab({
      sections: { logging: section(store.url) },
      prepare: (cluster) => prepareLogs(cluster, new Map()),
    });
  }, 300_000);
  afterAll(async () => {
    await lab?.stop();
    await store?.stop();
    for (const dir of dirs) await rm(dir, { recursive: true, force: true });
  });

  const get = (query: string): Promise<Answer> => lab.gateway(`${path}?${time}&${query}`, as('alice'));

  const open = (query: string): Promise<Message> => lab.open('http', `${path}?${query}`, as('alice'));

  describe('records of more than a megabyte', () => {
    test('are whole, and a page of too many of them says so', async () => {
      const few = (await get('namespaces=large&sort=asc&size=3')).json() as unknown as {
        query: { total: number; records: LogRecord[] };
      };
      expect(few.query.records.map(({ log }) => log.length)).toEqual([0, 1, 2].map(() => large + 2));
      const { query } = (await get('namespaces=large&size=30')).json() as {
        query: { total: number; records: LogRecord[]; partial: { reason: string } };
      };
      expect([query.total, query.partial.reason]).toEqual([30, expect.stringMatching(/more than 8 MiB/)]);
    });

    test('are exported, all of them', async () => {
      const lines = (await get('operation=export&namespaces=large&sort=asc')).text.split('\n').slice(0, -1);
      expect(lines.map((line) => line.length)).toEqual(
        Array.from({ length: 30 }, (_, i) => large + 1 + String(i).length),
      );
    });
  });

  test('after clients that leave in the middle of their exports nothing is asked any more', async () => {
    const left = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const response = await open(`operation=export&${time}`);
        expect(response.status).toBe(200);
        await once(response, 'data');
        return response;
      }),
    );
    for (const response of left) response.destroy();
    let before: number;
    do {
      before = await asked(store.url);
      await sleep(500);
    } while ((await asked(store.url)) !== before);
    expect((await get('operation=export&namespaces=ns-1')).status).toBe(200);
  });

  async function readyz(ask = as('alice')): Promise<readonly [number, string]> {
    const { status, text: told } = await lab.gateway('/readyz?verbose', ask);
    return [status, told];
  }

  const logsLine = async (): Promise<string | undefined> =>
    (await readyz())[1].split('\n').find((line) => line.includes('logs'));

  describe('a store that stops', () => {
    test('is a warning for who shows an identity, until it goes on; the server is ready', async () => {
      expect(await logsLine()).toBe('[+]logs ok');
      process.kill(store.pid, 'SIGSTOP');
      try {
        while ((await logsLine()) === '[+]logs ok') await sleep(100);
        expect(await logsLine()).toBe(`[+]logs ok (warning: the log store "${name}" did not answer in time)`);
        expect((await readyz())[0]).toBe(200);
        expect(await readyz({})).toEqual([200, 'ok']);
      } finally {
        process.kill(store.pid, 'SIGCONT');
      }
      while ((await logsLine()) !== '[+]logs ok') await sleep(100);
      expect((await get('size=1')).status).toBe(200);
    });
  });

  describe('a store that dies', () => {
    test('ends what is under way as what it is, and answers when it is back', async () => {
      const tail = await open('follow=true&namespaces=ns-1');
      const told = text(tail);
      const reading = await open(`operation=export&namespaces=large&${time}`);
      await once(reading, 'data');
      // Else it might come to its end before the store does.
      reading.pause();
      const cut = new Promise((resolve) => reading.once('error', resolve));
      await store.stop();
      reading.resume();
      await cut;
      expect(reading.readableEnded).toBe(false);
      const [last = ''] = (await told)
        .split('\n')
        .filter((line) => line !== '')
        .slice(-1);
      expect(JSON.parse(last)).toMatchObject({
        kind: 'Status',
        code: 503,
        message: expect.not.stringContaining('127'),
      });
      expectFailure(await get('size=1'), 503, 'ServiceUnavailable');
      expectFailure(await get('operation=export'), 503, 'ServiceUnavailable');
      store = await begin();
      expect((await get('size=1')).json()).toMatchObject({ query: { total: records.length } });
    });
  });
}
