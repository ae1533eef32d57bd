import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { jsonSchemaOf } from '../../../src/docs/openapi/json-schema.ts';
import { userSchema } from '../../../src/iam/schemas.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Reduces a schema to the names, types and enumerations that the API and the CRD have in common. */
function outline({ type, properties, items, enum: values }: Schema): unknown {
  if (type === 'object')
    return Object.fromEntries(
      Object.entries((properties ?? {}) as Record<string, Schema>).map(([name, one]) => [name, outline(one)]),
    );
  return {
    type,
    ...(items === undefined ? {} : { items: outline(items as Schema) }),
    ...(values === undefined ? {} : { values }),
  };
}

test('the schema of a User matches its CustomResourceDefinition', () => {
  const file = new URL('../../../manifests/crds/users.iam.platform.io.yaml', import.meta.url);
  const { spec } = parse(readFileSync(file, 'utf8')) as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, Schema> } } }[] };
  };
  const crd = spec.versions[0]?.schema.openAPIV3Schema.properties;
  const ours = jsonSchemaOf(userSchema)['properties'] as Record<string, Schema>;
  for (const part of ['spec', 'status']) expect(outline(ours[part] ?? {})).toEqual(outline(crd?.[part] ?? {}));
});
