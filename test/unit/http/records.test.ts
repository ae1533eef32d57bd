import { expect, jest, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { allRecorded, recordSoon } from '../../../src/http/records.ts';

test('records are made later and in order', async () => {
  const made: number[] = [];
  for (const one of [1, 2, 3]) recordSoon(() => made.push(one));
  expect(made).toEqual([]);
  await allRecorded();
  expect(made).toEqual([1, 2, 3]);
});

test('a record that is added by a record is made, too', async () => {
  const made: string[] = [];
  recordSoon(() => {
    made.push('first');
    recordSoon(() => made.push('second'));
  });
  await allRecorded();
  await allRecorded();
  expect(made).toEqual(['first', 'second']);
});

test('at most 200 records wait', async () => {
  const made = jest.fn();
  for (let count = 0; count < 199; count += 1) recordSoon(made);
  expect(made).not.toHaveBeenCalled();
  recordSoon(made);
  expect(made).toHaveBeenCalled();
  await allRecorded();
  expect(made).toHaveBeenCalledTimes(200);
});

test('other tasks get a turn between records that take long', async () => {
  const order: string[] = [];
  const busy = (name: string) => (): void => {
    order.push(name);
    for (const end = performance.now() + 2; performance.now() < end;);
  };
  recordSoon(() => {
    setImmediate(() => order.push('another task'));
    busy('first')();
  });
  recordSoon(busy('second'));
  await allRecorded();
  expect(order).toEqual(['first', 'another task', 'second']);
});

test('records are made and written before the process exits', () => {
  const program = fileURLToPath(new URL('../../fakes/recording-process.ts', import.meta.url));
  const output = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    encoding: 'utf8',
  });
  expect(output).toContain('"message":"recorded"');
});
