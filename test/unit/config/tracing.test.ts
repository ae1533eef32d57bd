import { expect, test } from '@jest/globals';
import { tracing } from '../../../src/config/tracing.ts';

test.each<[endpoint: string, outcome: 'accepted' | 'rejected']>([
  ['', 'accepted'],
  ['http://collector.tracing.svc:4318', 'accepted'],
  ['https://collector.example.com/', 'accepted'],
  ['https://collector.example.com/otlp', 'accepted'],
  ['http://[::1]:4318', 'accepted'],
  ['grpc://collector:4317', 'rejected'],
  ['http://user:pass@collector:4318', 'rejected'],
  ['http://@collector:4318', 'rejected'],
  ['http://collector:4318/?', 'rejected'],
  ['http://collector:4318/?tenant=a', 'rejected'],
  ['http://collector:4318/#', 'rejected'],
  [' http://collector:4318', 'rejected'],
  ['http://collector:4318/v1/traces', 'rejected'],
  ['http://collector:4318/v1/traces//', 'rejected'],
])('the trace endpoint "%s" is %s', (endpoint, outcome) => {
  expect(tracing.safeParse({ endpoint }).success).toBe(outcome === 'accepted');
});
