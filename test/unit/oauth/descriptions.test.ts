/** Tests that the OAuth paths of the published OpenAPI document in api/ match the endpoints. */
import { beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { readExamples } from '../../../src/docs/openapi/examples.ts';
import { openapi31 } from '../../../src/docs/openapi/openapi31.ts';
import { operationOf } from '../../../src/docs/openapi/operations.ts';
import { issuer } from '../../fakes/configuration.ts';
import { createLab, routesOf } from '../../labs/oauth.ts';

interface Document {
  readonly paths: Readonly<Record<string, object>>;
  readonly components: Readonly<Record<'schemas' | 'responses', Readonly<Record<string, object>>>>;
}

const file = new URL('../../../api/platform.v3.json', import.meta.url);
const published = JSON.parse(readFileSync(file, 'utf8')) as Document;
const paths = Object.keys(published.paths).filter((path) => /^\/(oauth|\.well-known)\//.test(path));
let described: Document;

beforeAll(async () => {
  const operations = routesOf(await createLab()).map((route) => operationOf(route, readExamples()));
  const about = { title: '', description: '', version: '', tags: [], operations };
  described = JSON.parse(JSON.stringify(openapi31(about, issuer))) as Document;
});

test('the OAuth endpoints have exactly the paths of the published OpenAPI document', () => {
  expect(Object.keys(described.paths).toSorted()).toEqual(paths.toSorted());
});

test.each(paths)('the description of the path %s equals its description in the published OpenAPI document', (path) => {
  expect(described.paths[path]).toEqual(published.paths[path]);
});

test.each(['schemas', 'responses'] as const)(
  'the %s of the OAuth endpoints equal those in the published OpenAPI document',
  (kind) => {
    for (const [name, one] of Object.entries(described.components[kind]))
      expect(one).toEqual(published.components[kind][name]);
  },
);

test('every OAuth operation has a summary of at most eight words, and a description in sentences', async () => {
  const unfit = routesOf(await createLab()).filter(
    ({ summary, description = '' }) =>
      summary.split(' ').length > 8 || summary.endsWith('.') || !description.endsWith('.'),
  );
  expect(unfit.map(({ method, path, summary }) => `${method} ${path}: ${summary}`)).toEqual([]);
});
