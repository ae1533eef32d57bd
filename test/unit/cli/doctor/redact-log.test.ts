import { expect, test } from '@jest/globals';
import { redactLog } from '../../../../src/cli/doctor/redact-log.ts';

const shown = { kind: 'Event', apiVersion: 'audit.k8s.io/v1', level: 'RequestResponse', verb: 'create' };
const event = {
  ...shown,
  requestObject: { spec: { containers: [{ env: [{ name: 'PASSWORD', value: 'hunter2' }] }] } },
  responseObject: { metadata: { annotations: { 'vault-token': 'hunter2' } } },
};
const line = JSON.stringify(event);

test('the support bundle contains audit events without the bodies of requests and responses', () => {
  const log = redactLog(`${line}\n${line}\n`);
  expect(log).toBe(`${JSON.stringify(shown)}\n${JSON.stringify(shown)}\n`);
});

test.each([
  ['the end', line.slice(60)],
  ['the start', line.slice(0, -60)],
])('the support bundle omits a line that is only %s of an audit event', (_, part) => {
  expect(part).toContain('hunter2');
  expect(redactLog(`a line\n${part}`)).toBe('a line\n[incomplete line]');
});

test.each(['{"level":"info","message":"listening"}', 'FATAL ERROR: heap out of memory', ''])(
  'the support bundle contains the line %j of the log unchanged',
  (other) => {
    expect(redactLog(other)).toBe(other);
  },
);
