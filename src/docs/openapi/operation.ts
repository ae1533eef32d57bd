import type { ResponseDescriptions, BodyDescription, ParameterDescription } from '../../http/route.ts';
import type { Security } from './security.ts';
import type { Example } from './examples.ts';
import type { ErrorResponse } from './error-responses.ts';
import type { JSONSchema } from './json-schema.ts';

/** What a document says of a method of a path. */
export interface OperationDescription {
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly example?: Example | undefined;
  readonly deprecated?: boolean;
  /** Undefined where it is as everywhere. */
  readonly security?: Security | undefined;
  readonly parameters: readonly ParameterDescription<JSONSchema>[];
  readonly body?: BodyDescription<JSONSchema> | undefined;
  readonly responses: ResponseDescriptions<JSONSchema>;
  /** By status. */
  readonly errors: ReadonlyMap<number, ErrorResponse>;
  /** `x-…`. */
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface TagDescription {
  readonly name: string;
  readonly description: string;
  /** Tags of the group `Other` are shown last and folded. */
  readonly group?: 'APIs' | 'Other';
}

/** What a document says of the whole. */
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
  /** Redoc's extension, which the page at /docs reads too. */
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

/** By name, in the order of the alphabet. */
export const sorted = <T>(all: ReadonlyMap<string, T>): Readonly<Record<string, T>> =>
  Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** The operations by path and method, each as `write` has it. */
export const byPath = (
  operations: readonly OperationDescription[],
  write: (operation: OperationDescription) => object,
): object =>
  Object.fromEntries(
    [...Map.groupBy(operations, ({ path }) => path)].map(([path, those]) => [
      path,
      Object.fromEntries(those.map((one) => [one.method, write(one)])),
    ]),
  );
