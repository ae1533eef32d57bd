/** The whole server with a real log store that has faults. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import type { RunningService } from '../../../hack/cluster/running.ts';
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';
import type { Message } from '../../client/message.ts';
import type { AppResponse } from '../../fakes/request.ts';
import { startLab, type Lab } from '../../labs/conformance/lab.ts';
import { as, prepareLogs } from '../../labs/conformance/logging-lab.ts';
import { expectFailure } from '../../labs/conformance/status.ts';
import { at, corpus, createRecords } from './corpus.ts';

const path = '/kapis/logging.platform.io/v1alpha2/logs';
const time = `start_time=${corpus.start}&end_time=${corpus.end}`;
const large = 1_500_000;
/** Records for the store. A response with all long texts exceeds the size that the server accepts. */
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
  /** Starts the store with these records. */
  readonly start: (dir: string, port: number, records: readonly LogRecord[]) => Promise<RunningService>;
  /** Returns the number of requests so far. */
  readonly countRequests: (url: string) => Promise<number>;
}

export function faultsSuite(name: string, { section, start, countRequests }: Facts): void {
  /** A new folder for each start. The server may run as another user, who cannot read the test's own folders. */
  const dirs: string[] = [];
  let port: number;
  let store: RunningService;
  let lab: Lab;

  async function begin(): Promise<RunningService> {
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

  const get = (query: string): Promise<AppResponse> => lab.gateway(`${path}?${time}&${query}`, as('alice'));

  const open = (query: string): Promise<Message> => lab.open('http', `${path}?${query}`, as('alice'));

  describe('log records of more than a megabyte', () => {
    test('a query returns log records of more than a megabyte completely, and reports a page over 8 MiB as partial', async () => {
      const few = (await get('namespaces=large&sort=asc&size=3')).json() as unknown as {
        query: { total: number; records: LogRecord[] };
      };
      expect(few.query.records.map(({ log }) => log.length)).toEqual([0, 1, 2].map(() => large + 2));
      const { query } = (await get('namespaces=large&size=30')).json() as {
        query: { total: number; records: LogRecord[]; partial: { reason: string } };
      };
      expect([query.total, query.partial.reason]).toEqual([30, expect.stringMatching(/exceeds 8 MiB/)]);
    });

    test('an export contains all log records of more than a megabyte', async () => {
      const lines = (await get('operation=export&namespaces=large&sort=asc')).text.split('\n').slice(0, -1);
      expect(lines.map((line) => line.length)).toEqual(
        Array.from({ length: 30 }, (_, i) => large + 1 + String(i).length),
      );
    });
  });

  test('the log store receives no more requests after clients abandon their exports', async () => {
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
      before = await countRequests(store.url);
      await sleep(500);
    } while ((await countRequests(store.url)) !== before);
    expect((await get('operation=export&namespaces=ns-1')).status).toBe(200);
  });

  async function readyz(send = as('alice')): Promise<readonly [number, string]> {
    const { status, text: body } = await lab.gateway('/readyz?verbose', send);
    return [status, body];
  }

  const logsLine = async (): Promise<string | undefined> =>
    (await readyz())[1].split('\n').find((line) => line.includes('logs'));

  describe('a suspended log store', () => {
    test('/readyz?verbose returns 200 with a warning while the log store is suspended', async () => {
      expect(await logsLine()).toBe('[+]logs ok');
      process.kill(store.pid, 'SIGSTOP');
      try {
        while ((await logsLine()) === '[+]logs ok') await sleep(100);
        expect(await logsLine()).toBe(`[+]logs ok (warning: the log store "${name}" did not respond in time)`);
        expect((await readyz())[0]).toBe(200);
        expect(await readyz({})).toEqual([200, 'ok']);
      } finally {
        process.kill(store.pid, 'SIGCONT');
      }
      while ((await logsLine()) !== '[+]logs ok') await sleep(100);
      expect((await get('size=1')).status).toBe(200);
    });
  });

  describe('a log store that crashes', () => {
    test('running requests fail when the log store crashes, and new requests succeed after its restart', async () => {
      const tail = await open('follow=true&namespaces=ns-1');
      const logged = text(tail);
      const reading = await open(`operation=export&namespaces=large&${time}`);
      await once(reading, 'data');
      // Without a pause, the export might complete before the store stops.
      reading.pause();
      const cut = new Promise((resolve) => reading.once('error', resolve));
      await store.stop();
      reading.resume();
      await cut;
      expect(reading.readableEnded).toBe(false);
      const [last = ''] = (await logged)
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
