import { beforeEach, describe, expect, test } from '@jest/globals';
import { Lifecycle, type Component, Topic } from '../../../src/runtime/lifecycle.ts';
import { logOfLines } from '../../fakes/log.ts';

const never = new AbortController().signal;
const atOnce = { announce: 0, grace: 0 };

let lifecycle: Lifecycle;
let lines: () => string[];
let calls: string[];
beforeEach(() => {
  const logged = logOfLines();
  ({ lines } = logged);
  lifecycle = new Lifecycle(logged.log);
  calls = [];
});

/** Adds a component that records its calls, one turn of the event loop after each. */
function add(name: string, more: Component = {}): void {
  const record = async (call: string): Promise<void> => {
    await new Promise(setImmediate);
    calls.push(`${call} ${name}`);
  };
  lifecycle.add(name, {
    start: () => record('start'),
    drain: () => void calls.push(`drain ${name}`),
    stop: () => record('stop'),
    ...more,
  });
}

const failing = (message: string) => (): Promise<void> => Promise.reject(new Error(message));

test('components start one at a time in the order of their addition, and drain and stop in reverse order', async () => {
  for (const name of ['a', 'b', 'c']) add(name);
  await lifecycle.start(never);
  expect(calls.splice(0)).toEqual(['start a', 'start b', 'start c']);
  await lifecycle.stop(atOnce);
  expect(calls).toEqual(['drain c', 'drain b', 'drain a', 'stop c', 'stop b', 'stop a']);
});

test('a component receives the abort signal of the start and the deadlines of the stop', async () => {
  const times = { announce: 1, grace: 2 };
  const given: unknown[] = [];
  lifecycle.add('a', { start: (signal) => void given.push(signal), stop: (stopTimes) => void given.push(stopTimes) });
  await lifecycle.start(never);
  await lifecycle.stop(times);
  expect(given).toEqual([never, times]);
});

describe('a start that fails', () => {
  test('a start that fails stops the failed component and the components before it, and throws the error of the failed component', async () => {
    add('a');
    add('b');
    add('c', { start: failing('no cluster') });
    add('d');
    await expect(lifecycle.start(never)).rejects.toThrow('no cluster');
    expect(calls).toEqual(['start a', 'start b', 'stop c', 'stop b', 'stop a']);
  });

  test('a start that fails throws its error even if a component does not stop', async () => {
    add('a');
    add('b', { start: failing('no cluster'), stop: failing('cannot stop') });
    await expect(lifecycle.start(never)).rejects.toThrow('no cluster');
    expect(calls).toEqual(['start a', 'stop a']);
  });

  test('a component of a failed start is not stopped a second time by a later stop', async () => {
    add('a');
    add('b', { start: failing('no cluster') });
    await expect(lifecycle.start(never)).rejects.toThrow('no cluster');
    calls = [];
    await lifecycle.stop(atOnce);
    expect(calls).toEqual([]);
  });
});

test('aborting the signal ends the start before the next component, and stops the started components', async () => {
  const ended = new AbortController();
  add('a', { start: () => ended.abort(new Error('SIGTERM')) });
  add('b');
  await expect(lifecycle.start(ended.signal)).rejects.toThrow('SIGTERM');
  expect(calls).toEqual(['stop a']);
});

test.each(['drain', 'stop'] as const)(
  'a failed %s of a component is logged and does not affect the other components',
  async (call) => {
    add('a');
    add('b', {
      [call]: () => {
        throw new Error('it hangs');
      },
    });
    add('c');
    await lifecycle.start(never);
    calls = [];
    await lifecycle.stop(atOnce);
    const all = ['drain c', 'drain b', 'drain a', 'stop c', 'stop b', 'stop a'];
    expect(calls).toEqual(all.filter((made) => made !== `${call} b`));
    expect(lines().map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ level: 'error', message: `component failed to ${call}`, component: 'b' }),
    ]);
  },
);

test('the lifecycle has a health check for each component that reports its health, in the order of addition', () => {
  let problem = 'not read yet';
  lifecycle.add('silent', {});
  lifecycle.add('users', { problem: () => problem });
  lifecycle.add('logs', { warning: () => 'the log store does not respond' });
  const report = () => lifecycle.checks.map((check) => [check.name, check.problem(), check.warning()]);
  expect(report()).toEqual([
    ['users', 'not read yet', ''],
    ['logs', '', 'the log store does not respond'],
  ]);
  problem = '';
  expect(report()[0]).toEqual(['users', '', '']);
});

test('a topic calls its listeners in the order of their subscription', () => {
  const topic = new Topic<string>();
  const received: string[] = [];
  topic.publish('before anyone subscribed');
  topic.subscribe((value) => received.push(`first ${value}`));
  topic.subscribe((value) => received.push(`second ${value}`));
  topic.publish('event');
  expect(received).toEqual(['first event', 'second event']);
});

test('a topic does not call a listener that has unsubscribed, even if the listener unsubscribed itself during a call', () => {
  const topic = new Topic<number>();
  const received: number[] = [];
  const unsubscribe = topic.subscribe((value) => {
    received.push(value);
    unsubscribe();
  });
  topic.publish(1);
  topic.publish(2);
  expect(received).toEqual([1]);
});
