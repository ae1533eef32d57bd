import type { ResponseDescriptions, BodyDescription, ParameterDescription } from '../../http/route.ts';
import type { Security } from './security.ts';
import type { Example } from './examples.ts';
import type { ErrorResponse } from './error-responses.ts';
import type { JSONSchema } from './json-schema.ts';

/** Description of a method of a path. */
export interface OperationDescription {
  readonly method: string;
  /** Path template with parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly example?: Example | undefined;
  readonly deprecated?: boolean;
  /** Security requirement; undefined if the default of the document applies. */
  readonly security?: Security | undefined;
  readonly parameters: readonly ParameterDescription<JSONSchema>[];
  readonly body?: BodyDescription<JSONSchema> | undefined;
  readonly responses: ResponseDescriptions<JSONSchema>;
  /** Responses by status. */
  readonly errors: ReadonlyMap<number, ErrorResponse>;
  /** Members whose names start with `x-`. */
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface TagDescription {
  readonly name: string;
  readonly description: string;
  /** Tags of the group `Other` are shown last and collapsed. */
  readonly group?: 'APIs' | 'Other';
}

/** Description of an API. */
export interface DocumentDescription {
  readonly title: string;
  readonly description: string;
  readonly version: string;
  readonly tags: readonly TagDescription[];
  readonly operations: readonly OperationDescription[];
}

/** The parts of a document before its paths. */
export interface DocumentHead {
  readonly info: object;
  readonly tags: readonly Omit<TagDescription, 'group'>[];
  /** Extension that Redoc defines. The page /docs reads it too. */
  readonly 'x-tagGroups'?: readonly { readonly name: string; readonly tags: readonly string[] }[];
}

const license = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' };

export function headOf({ title, description, version, tags }: Omit<DocumentDescription, 'operations'>): DocumentHead {
  const groups = Map.groupBy(tags, ({ group }) => group);
  const named = [...groups].flatMap(([name, members]) =>
    name === undefined ? [] : [{ name, tags: members.map((tag) => tag.name) }],
  );
  return {
    info: { title, description, version, license },
    tags: tags.map(({ name, description: about }) => ({ name, description: about })),
    ...(named.length === 0 ? {} : { 'x-tagGroups': named }),
  };
}

/** Returns the entries sorted by name. */
export const sorted = <T>(all: ReadonlyMap<string, T>): Readonly<Record<string, T>> =>
  Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** Returns the written operations by path and method. */
export const byPath = (
  operations: readonly OperationDescription[],
  write: (operation: OperationDescription) => object,
): object =>
  Object.fromEntries(
    [...Map.groupBy(operations, ({ path }) => path)].map(([path, operationsOfPath]) => [
      path,
      Object.fromEntries(operationsOfPath.map((one) => [one.method, write(one)])),
    ]),
  );
