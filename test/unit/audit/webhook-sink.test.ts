import { afterEach, describe, expect, jest, test } from '@jest/globals';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as immediate } from 'node:timers/promises';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { WebhookSink, type WebhookSinkOptions } from '../../../src/audit/webhook-sink.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { logOfLines } from '../../fakes/log.ts';

const servers: Pick<Server, 'close' | 'closeAllConnections'>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly items: readonly number[];
  readonly list: Record<string, unknown>;
}

interface Lab {
  readonly received: Received[];
  readonly lost: number[];
  readonly sink: WebhookSink;
}

/** A receiver that responds with these status codes in turn and repeats the last code; 0 closes the connection. */
async function lab(
  responses: readonly number[] = [200],
  { body = 'thanks', ...options }: Partial<WebhookSinkOptions> & { readonly body?: string } = {},
): Promise<Lab> {
  const received: Received[] = [];
  const left = [...responses];
  const receive = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const list = JSON.parse(await text(req)) as Record<string, unknown> & { items: { n: number }[] };
    received.push({ headers: req.headers, items: list.items.map(({ n }) => n), list });
    const status = left.length > 1 ? left.shift() : left[0];
    if (status === 0) req.socket.destroy();
    else res.writeHead(status ?? 200, { Location: '/elsewhere' }).end(body);
  };
  const server = createServer((req, res) => void receive(req, res));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const lost: number[] = [];
  const sink = new WebhookSink({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    token: () => undefined,
    batchMaxSize: 3,
    batchMaxWait: 5,
    bufferSize: 10,
    log: createLogger({ silent: true }),
    dropped: (events) => void lost.push(events),
    firstPause: 1,
    ...options,
  });
  return { received, lost, sink };
}

const write = (sink: WebhookSink, from: number, to: number): void => {
  for (let n = from; n <= to; n += 1) sink.write(`{"n":${n}}`);
};

async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe('the audit webhook', () => {
  test('the audit webhook gets lists of at most the batch size, with each event once and in order', async () => {
    const { received, lost, sink } = await lab([200], { token: () => 'of-the-receiver' });
    write(sink, 1, 8);
    await sink.close();
    expect(received.flatMap(({ items }) => items)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(Math.max(...received.map(({ items }) => items.length))).toBe(3);
    expect(received[0]?.list).toMatchObject({ kind: 'EventList', apiVersion: 'audit.k8s.io/v1', metadata: {} });
    expect(received[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer of-the-receiver',
    });
    expect(lost).toEqual([]);
  });

  test('the audit webhook gets a partial batch after the maximum wait', async () => {
    const { received, sink } = await lab();
    write(sink, 1, 1);
    await until(() => received.length === 1);
    write(sink, 2, 2);
    await until(() => received.length === 2);
    expect(received.map(({ items }) => items)).toEqual([[1], [2]]);
    await sink.close();
  });

  test('the audit webhook gets events that arrive long after a batch that arrived during a delivery', async () => {
    // The process can wait, but the maximum wait of a batch cannot pass.
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
    try {
      const batchMaxWait = 60_000;
      const { received, sink } = await lab([200], { batchMaxWait });
      const sent = async (batches: number): Promise<void> => {
        while (received.length < batches) await immediate();
      };
      write(sink, 1, 4);
      await sent(2);
      await immediate();
      jest.advanceTimersByTime(batchMaxWait);
      write(sink, 5, 7);
      await sent(3);
      expect(received.map(({ items }) => items)).toEqual([[1, 2, 3], [4], [5, 6, 7]]);
      await sink.close();
    } finally {
      jest.useRealTimers();
    }
  });

  test.each([[[503, 0, 429, 200]], [[0, 200]], [[500, 500, 500, 500, 200]]])(
    'an audit webhook that responds with %j gets the same batch again until it accepts the batch',
    async (responses) => {
      const { received, lost, sink } = await lab(responses);
      write(sink, 1, 2);
      await until(() => received.length === responses.length);
      expect(received.every(({ items }) => items.join() === '1,2')).toBe(true);
      await sink.close();
      expect(lost).toEqual([]);
    },
  );

  test('an audit webhook that rejects every request gets only one request at shutdown, even if several batches are queued', async () => {
    const { received, lost, sink } = await lab([503], { batchMaxWait: 60_000, batchMaxSize: 2, firstPause: 60_000 });
    write(sink, 1, 8);
    await until(() => received.length === 1);
    await sink.close();
    expect(received.map(({ items }) => items.join())).toEqual(['1,2', '1,2']);
    expect(lost.reduce((sum, events) => sum + events, 0)).toBe(8);
  });

  test('an audit webhook that accepts a batch with a response of over 1 MiB gets the batch once', async () => {
    const { received, lost, sink } = await lab([200], { body: 'x'.repeat(1024 * 1024 + 1) });
    write(sink, 1, 3);
    await sink.close();
    expect([received.length, lost]).toEqual([1, []]);
  });

  test('a batch that the audit webhook rejects is not sent again, and the loss is counted', async () => {
    const { received, lost, sink } = await lab([400, 200]);
    write(sink, 1, 3);
    await until(() => lost.length > 0);
    write(sink, 4, 4);
    await sink.close();
    expect(lost).toEqual([3]);
    expect(received.map(({ items }) => items)).toEqual([[1, 2, 3], [4]]);
  });

  test('a redirect of the audit webhook is not followed, the events are counted as lost, and the log does not contain the token', async () => {
    const { log, lines } = logOfLines();
    const { received, lost, sink } = await lab([307], { token: () => 'of-the-receiver', log });
    write(sink, 1, 3);
    await until(() => lost.length > 0);
    await sink.close();
    expect([received.length, lost]).toEqual([1, [3]]);
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).not.toContain('of-the-receiver');
  });

  test('the audit webhook gets no events if its certificate is from a CA other than the configured CA', async () => {
    const authority = await createAuthority('receivers');
    const { certificate: cert, key } = await authority.issue({ commonName: 'receiver', server: ['127.0.0.1'] });
    let requests = 0;
    const server = createSecureServer({ cert, key }, (_, res) => {
      requests += 1;
      res.end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sent: number[] = [];
    for (const { certificate: caCertificate } of [await createAuthority('other'), authority]) {
      const { sink, lost } = await lab([], { url, caCertificate });
      write(sink, 1, 1);
      await sink.close();
      sent.push(1 - lost.length);
    }
    expect([sent, requests]).toEqual([[0, 1], 1]);
  });

  test('events are lost and counted if the audit webhook is down for long or the buffer is full', async () => {
    const { received, lost, sink } = await lab([503]);
    write(sink, 1, 15);
    // Three events are being sent, and ten events are queued.
    expect(lost.reduce((sum, events) => sum + events, 0)).toBeGreaterThanOrEqual(2);
    await until(() => received.length >= 5);
    await sink.close();
    expect(lost.reduce((sum, events) => sum + events, 0)).toBe(15);
  });

  test('the audit webhook gets a pending batch once more at shutdown', async () => {
    const { received, lost, sink } = await lab([503], { firstPause: 600_000 });
    write(sink, 1, 3);
    await until(() => received.length === 1);
    await sink.close();
    expect(received.length).toBe(2);
    expect(lost).toEqual([3]);
  });
});
