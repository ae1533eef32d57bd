/** Schemas of the kinds of Kubernetes, from the API description in the source of kube-apiserver. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { moduleFolder } from '../cluster/go-modules.ts';

interface Schema {
  type?: string | string[];
  $ref?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

interface Swagger {
  readonly definitions: Record<string, Schema>;
}

/** API groups of other projects that the chart may render. Kubernetes has no schemas for these groups. */
const foreign = ['cert-manager.io/', 'gateway.networking.k8s.io/', 'monitoring.coreos.com/'];

/** Returns a function that returns the problems of an object, including fields that its kind does not have. */
export async function kubernetesSchemas(): Promise<(object: unknown) => string[]> {
  const file = join(await moduleFolder('k8s.io/kubernetes'), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(await readFile(file, 'utf8')) as Swagger;
  for (const schema of Object.values(definitions)) schema.additionalProperties ??= schema.properties === undefined;
  allowOtherForms(definitions);

  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema({ $id: 'kubernetes', definitions });
  const byKind = new Map<string, string>();
  for (const [name, schema] of Object.entries(definitions))
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? [])
      byKind.set(`${group === '' ? '' : `${group}/`}${version} ${kind}`, name);

  const compiled = new Map<string, ValidateFunction>();
  return function problemsOf(object): string[] {
    const { apiVersion, kind, metadata, items } = object as {
      apiVersion?: string;
      kind?: string;
      metadata?: { name?: string };
      items?: readonly unknown[];
    };
    // Clients expand a List; kube-apiserver does not know this kind.
    if (apiVersion === 'v1' && kind === 'List' && items !== undefined) return items.flatMap(problemsOf);
    const title = `${kind} ${metadata?.name}`;
    if (foreign.some((group) => apiVersion?.startsWith(group))) return [];
    const name = byKind.get(`${apiVersion} ${kind}`);
    if (name === undefined) return [`${title}: Kubernetes has no ${kind} in ${apiVersion}`];
    const validate = compiled.get(name) ?? ajv.compile({ $ref: `kubernetes#/definitions/${name}` });
    compiled.set(name, validate);
    validate(object);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${title}: ${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}

/** Accepts numbers and strings where the API description names only one of these types. */
function allowOtherForms(definitions: Record<string, Schema>): void {
  const numberOrString = ['number', 'string'];
  const set = (name: string, schema: Schema): void => {
    if (definitions[name] === undefined) throw new Error(`the API description of Kubernetes no longer has ${name}`);
    definitions[name] = schema;
  };
  set('io.k8s.apimachinery.pkg.util.intstr.IntOrString', { type: numberOrString });
  set('io.k8s.apimachinery.pkg.api.resource.Quantity', { type: numberOrString });
  const extensions = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
  const ref = { $ref: `#/definitions/${extensions}.JSONSchemaProps` };
  set(`${extensions}.JSONSchemaPropsOrArray`, ref);
  set(`${extensions}.JSONSchemaPropsOrBool`, { anyOf: [{ type: 'boolean' }, ref] });
}
