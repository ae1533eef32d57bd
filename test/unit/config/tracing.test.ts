import { expect, test } from '@jest/globals';
import { tracing } from '../../../src/config/tracing.ts';

test.each<[endpoint: string, isValid: boolean]>([
  ['', true],
  ['http://collector.tracing.svc:4318', true],
  ['https://collector.example.com/', true],
  ['https://collector.example.com/otlp', true],
  ['http://[::1]:4318', true],
  ['grpc://collector:4317', false],
  ['http://user:pass@collector:4318', false],
  ['http://@collector:4318', false],
  ['http://collector:4318/?', false],
  ['http://collector:4318/?tenant=a', false],
  ['http://collector:4318/#', false],
  [' http://collector:4318', false],
  ['http://collector:4318/v1/traces', false],
  ['http://collector:4318/v1/traces//', false],
])('the endpoint "%s" is accepted: %s', (endpoint, isValid) => {
  expect(tracing.safeParse({ endpoint }).success).toBe(isValid);
});
