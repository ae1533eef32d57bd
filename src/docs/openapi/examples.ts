/**
 * Examples of the operations. hack/update-examples.ts records them; test/conformance/examples.test.ts compares them
 * with real responses.
 */
import { readPackageFile } from '../../runtime/package.ts';
import type { OperationDescription } from './operation.ts';
import type { JSONSchema } from './json-schema.ts';

/** A request and its response. The body of a form is an object; a body that is not JSON is a string. */
export interface Example {
  readonly request: { readonly url: string; readonly type?: string; readonly body?: unknown };
  readonly response: {
    readonly status: number;
    readonly location?: string;
    readonly type?: string;
    readonly body?: unknown;
  };
}

/** Returns the examples by operationId. */
export const readExamples = (): Readonly<Record<string, Example>> =>
  readPackageFile('api/examples/platform.json') as Readonly<Record<string, Example>>;

/** Returns the values of the parameters in the request of an example, by name. */
export function parameterExamples({ path, parameters, example }: OperationDescription): ReadonlyMap<string, unknown> {
  if (example === undefined) return new Map();
  const [ofPath = '', query = ''] = example.request.url.split('?');
  const pattern = path.replaceAll('.', String.raw`\.`).replaceAll(/\{(\w+)\}/g, '(?<$1>.+)');
  const inPath = new RegExp(`^${pattern}$`).exec(ofPath)?.groups ?? {};
  const given = { ...inPath, ...Object.fromEntries(new URLSearchParams(query)) };
  return new Map(
    parameters.flatMap(({ name, schema }) => {
      const text = given[name];
      return text === undefined ? [] : [[name, valueOf(text, schema)]];
    }),
  );
}

function valueOf(text: string, { type }: JSONSchema): unknown {
  if (type === 'integer') return Number(text);
  return type === 'boolean' ? text === 'true' : text;
}
