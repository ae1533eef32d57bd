import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { readExamples } from '../../src/docs/openapi/examples.ts';
import { runExamples } from '../labs/conformance/examples.ts';

test('the examples in the OpenAPI descriptions equal the responses of the server (make update records them)', async () => {
  expect(await runExamples()).toEqual(readExamples());
});

test('each operation of the OpenAPI description has an example', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../api/platform.v3.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
  const examples = readExamples();
  expect(ids.filter((id) => examples[id] === undefined)).toEqual([]);
  expect(Object.keys(examples).filter((id) => !ids.includes(id))).toEqual([]);
});

test('only the examples of removed endpoints, and of metadata for issuers with a path, show errors', () => {
  const failed = Object.entries(readExamples()).flatMap(([id, { response }]) =>
    response.status < 400 ? [] : [`${response.status} ${id.replace(/^[a-z]+/, '')}`],
  );
  expect(failed.filter((one) => !/^404 (?:Logging(?:Workspace|Namespace|Fluentbit)|WellKnown)/.test(one))).toEqual([]);
});
