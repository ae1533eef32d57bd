import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Definition } from '../../../../src/docs/openapi/custom-resource.ts';
import type { JSONSchema } from '../../../../src/docs/openapi/json-schema.ts';

interface CategorizedDefinition {
  readonly spec: { readonly names: { readonly plural: string; readonly categories?: readonly string[] } };
}

const folder = new URL('../../../../manifests/crds/', import.meta.url);
const files = readdirSync(folder).filter((file) => file !== 'kustomization.yaml');

/** Returns the fields without a description, except `metadata`, which Kubernetes describes. */
const silent = ({ properties = {}, items, additionalProperties }: JSONSchema, path: string): string[] => [
  ...Object.entries(properties as Readonly<Record<string, JSONSchema>>)
    .filter(([name]) => name !== 'metadata')
    .flatMap(([name, one]) => [
      ...(((one['description'] as string | undefined) ?? '').length < 10 ? [`${path}.${name}`] : []),
      ...silent(one, `${path}.${name}`),
    ]),
  ...[items, additionalProperties].flatMap((one) => (typeof one === 'object' ? silent(one as JSONSchema, path) : [])),
];

test.each(files)('the CustomResourceDefinition %s describes every field', (file) => {
  const { spec } = parse(readFileSync(new URL(file, folder), 'utf8')) as Definition;
  const all = spec.versions.flatMap(({ schema }) => silent(schema?.openAPIV3Schema ?? {}, spec.names.plural));
  expect(all).toEqual([]);
});

test('kubectl delete platform --all deletes sessions, but no users, login failures or login histories', () => {
  const categories = files.map((file) => {
    const { names } = (parse(readFileSync(new URL(file, folder), 'utf8')) as CategorizedDefinition).spec;
    return [names.plural, names.categories ?? []];
  });
  expect(Object.fromEntries(categories)).toEqual({
    loginfailuretables: [],
    loginhistories: [],
    sessions: ['platform'],
    users: [],
  });
});
