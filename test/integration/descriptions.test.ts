/** Descriptions of custom resources of a real cluster, compared with those of kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { call, gateway } from '../labs/integration/http.ts';
import { create, get, remove } from '../labs/integration/kube.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { adminToken, login } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';

type Schema = Readonly<Record<string, unknown>>;
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
  readonly components?: { readonly schemas: Readonly<Record<string, Schema>> };
}

const files = ['custom-resources.json', 'custom-resources.v3.json'];
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const name = 'wheels.describe.example.com';
const size = (description: string): object => ({
  type: 'object',
  properties: { spec: { type: 'object', properties: { size: { type: 'integer', description } } } },
});
const wheels = (description: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name },
  spec: {
    group: 'describe.example.com',
    names: { kind: 'Wheel', plural: 'wheels' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: size(description) },
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' },
        },
      },
    ],
  },
});

let token: string;
beforeAll(async () => {
  token = await adminToken();
  await create(definitions, wheels('How large it is'));
});
afterAll(() => remove(`${definitions}/${name}`));

const document = async (file: string, base = gateway()): Promise<Document> =>
  JSON.parse((await call(`${base}/swagger/${file}`, { token })).text) as Document;

const pathsOf = ({ paths }: Document, base: string): [string, Readonly<Record<string, Operation>>][] =>
  Object.entries(paths).filter(([path]) => path.startsWith(`${base}/`));

describe('custom resources', () => {
  test.each(files)('the OpenAPI description %s requires authentication but no rights', async (file) => {
    expect((await call(`${gateway()}/swagger/${file}`)).status).toBe(401);
    const { access_token: tokenOfAlice } = await login('alice', gateway(), passwords.alice);
    expect((await call(`${gateway()}/swagger/${file}`, { token: tokenOfAlice })).status).toBe(200);
  });

  test.each(files)('the OpenAPI description %s is valid', async (file) => {
    const { valid, errors } = await new Validator().validate((await document(file)) as never);
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  /** Parameter of an alpha feature, which may be disabled in a cluster. */
  const alpha = 'shardSelector';

  /** Fields from which clients are generated. */
  const outline = (paths: readonly [string, Readonly<Record<string, Partial<Operation>>>][]): unknown =>
    paths
      .map(([path, item]) => [
        path,
        ...['get', 'post', 'put', 'patch', 'delete'].map((method) => {
          const operation = item[method];
          const all = [
            ...((item['parameters'] ?? []) as Operation['parameters'] & object),
            ...(operation?.parameters ?? []),
          ];
          return (
            operation && [
              operation.operationId,
              all
                .filter((one) => one.in !== 'body' && one.name !== alpha)
                .map((one) => `${one.in} ${one.name}`)
                .toSorted(),
            ]
          );
        }),
      ])
      .toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));

  test.each(['iam.platform.io/v1alpha2', 'describe.example.com/v1'])(
    'the OpenAPI description of the API %s equals that of kube-apiserver',
    async (groupVersion) => {
      const base = `/apis/${groupVersion}`;
      await eventually('the custom resource is described', async () => {
        const other = (await get(`/openapi/v3${base}`)) as unknown as Document;
        for (const file of files)
          expect(outline(pathsOf(await document(file), base))).toEqual(outline(pathsOf(other, base)));
      });
    },
  );

  test.each(files)(
    'the OpenAPI description %s is updated on each replica when a CRD is deleted or created',
    async (file) => {
      const sizeIn = async (base: string): Promise<unknown> => {
        const { components, definitions: schemas } = await document(file, base);
        const spec = (components?.schemas ?? schemas)?.['com.example.describe.v1.Wheel.spec'] as
          { properties: { size: Schema } } | undefined;
        return spec?.properties.size['description'];
      };
      const everywhere = (what: unknown): Promise<unknown> =>
        eventually(`both replicas describe the field as ${String(what)}`, async () => {
          expect(await Promise.all([gateway(0), gateway(1)].map(sizeIn))).toEqual([what, what]);
        });
      await everywhere('How large it is');
      await remove(`${definitions}/${name}`);
      await everywhere(undefined);
      await create(definitions, wheels('How large it is'));
      await everywhere('How large it is');
    },
  );
});
