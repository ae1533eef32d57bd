import { beforeEach, describe, expect, test } from '@jest/globals';
import { StatusError } from '../../../src/runtime/errors.ts';
import type { LogStore } from '../../../src/logs/stores/log-store.ts';
import { ConfiguredLogStore } from '../../../src/logs/open-store.ts';
import type { LoggingSettings } from '../../../src/config/log-stores.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { settle } from '../../labs/cluster-fakes.ts';

const settings = (maxBytesPerContainer: number): LoggingSettings => ({ store: 'pods', pods: { maxBytesPerContainer } });

let opened: number[];
let closed: number[];
let problem: Error | undefined;
let isSlow: boolean;
let configure: (logging: LoggingSettings) => void;
let logs: ConfiguredLogStore;
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

/** Provides the section `logging` of the active configuration. */
const subscribe = (notify: (value: { readonly logging: LoggingSettings }) => void): void => {
  configure = (logging) => notify({ logging });
  configure(settings(1));
};

beforeEach(() => {
  opened = [];
  closed = [];
  problem = undefined;
  isSlow = false;
  const open = ({ pods }: LoggingSettings) => {
    const size = pods?.maxBytesPerContainer ?? 0;
    opened.push(size);
    const store: Pick<LogStore, 'name' | 'check' | 'close'> = {
      name: `of ${size}`,
      check: async (signal) => {
        if (problem !== undefined) throw problem;
        if (isSlow) await aborted(signal);
      },
      close: async () => void closed.push(size),
    };
    return () => store as LogStore;
  };
  logs = new ConfiguredLogStore({
    config: { subscribe },
    open,
    client: new MemoryCluster().client(),
    log: createLogger({ silent: true }),
    timeout: 20,
  });
  logs.start();
});

const nameNow = (): string => {
  const { storeFor, release } = logs.use();
  release();
  return storeFor(new MemoryCluster().client(), 'a').name;
};

describe('the open log store', () => {
  test('the open log store is kept while its configuration is unchanged', () => {
    configure(settings(1));
    expect([opened, closed, nameNow()]).toEqual([[1], [], 'of 1']);
  });

  test('the open log store is replaced at once when its configuration changes', async () => {
    configure(settings(2));
    await settle();
    expect([opened, closed, nameNow()]).toEqual([[1, 2], [1], 'of 2']);
  });

  test('a replaced log store is closed when its last request has finished, and its log tails are aborted', async () => {
    const [first, second] = [logs.use(), logs.use()];
    configure(settings(2));
    expect(first.replaced.reason).toBeInstanceOf(StatusError);
    first.release();
    first.release();
    await settle();
    expect(closed).toEqual([]);
    second.release();
    await settle();
    expect(closed).toEqual([1]);
  });

  test('an open log store that does not respond causes only a warning', async () => {
    expect(logs.warning()).toBe('');
    problem = new Error('it is down');
    configure(settings(2));
    await settle();
    expect([logs.warning(), nameNow()]).toEqual(['it is down', 'of 2']);
    problem = undefined;
    configure(settings(3));
    await settle();
    expect(logs.warning()).toBe('');
  });

  test('an open log store that responds slowly is reported as slow in a warning', async () => {
    isSlow = true;
    configure(settings(2));
    while (logs.warning() === '') await settle();
    expect(logs.warning()).toBe('the log store "of 2" did not respond in time');
  });

  test('the open log store is closed at shutdown, and later requests are rejected', async () => {
    await logs.stop();
    expect(closed).toEqual([1]);
    expect(() => logs.use()).toThrow('no log store is open');
  });
});
