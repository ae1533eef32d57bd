import { expect, test } from '@jest/globals';
import { Topic } from '../../../src/runtime/topic.ts';

test('a topic calls its listeners in the order in which they subscribed', () => {
  const topic = new Topic<string>();
  const heard: string[] = [];
  topic.publish('before anyone subscribed');
  topic.subscribe((value) => heard.push(`first ${value}`));
  topic.subscribe((value) => heard.push(`second ${value}`));
  topic.publish('event');
  expect(heard).toEqual(['first event', 'second event']);
});

test('a topic does not call a listener that has unsubscribed, even from within a listener', () => {
  const topic = new Topic<number>();
  const heard: number[] = [];
  const unsubscribe = topic.subscribe((value) => {
    heard.push(value);
    unsubscribe();
  });
  topic.publish(1);
  topic.publish(2);
  expect(heard).toEqual([1]);
});
