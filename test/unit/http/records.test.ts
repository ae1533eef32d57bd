import { expect, jest, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { allRecorded, recordSoon } from '../../../src/http/records.ts';
import type { AuditEvent } from '../../fakes/audit-event.ts';
import { auditor } from '../../fakes/auditor.ts';
import { sendRequest } from '../../fakes/request.ts';
import { as, face, resourcePath } from '../../labs/http.ts';

test('records are made later and in order', async () => {
  const made: number[] = [];
  for (const one of [1, 2, 3]) recordSoon(() => made.push(one));
  expect(made).toEqual([]);
  await allRecorded();
  expect(made).toEqual([1, 2, 3]);
});

test.each([1, 199, 200, 201])('each of %i records is made once if one of them adds another record', async (count) => {
  const made: number[] = [];
  for (let number = 0; number < count; number += 1)
    recordSoon(() => {
      made.push(number);
      if (number === Math.floor(count / 2)) recordSoon(() => made.push(count));
    });
  await allRecorded();
  await allRecorded();
  expect(made.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count + 1 }, (_, number) => number));
});

test('a record that throws does not prevent the other records', () => {
  const program = fileURLToPath(new URL('../../fakes/failing-record.ts', import.meta.url));
  const output = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    encoding: 'utf8',
  });
  expect(output.split('\n')).toEqual(['1', 'uncaught', '3', 'later', '']);
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

test.each([
  ['RequestResponse', 1],
  ['Metadata', 0],
] as const)('at the audit level %s, %i events are written at the end of the request', async (level, written) => {
  const events: AuditEvent[] = [];
  const { app } = face({ auditor: auditor({ level }, (event) => events.push(event)) });
  await sendRequest(app, resourcePath, as('alice'));
  expect(events).toHaveLength(written);
  await allRecorded();
  expect(events).toHaveLength(1);
});

test('records are made and written before the process exits', () => {
  const program = fileURLToPath(new URL('../../fakes/recording-process.ts', import.meta.url));
  const output = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    encoding: 'utf8',
  });
  expect(output).toContain('"message":"recorded"');
  expect(output).toContain('audited');
});
