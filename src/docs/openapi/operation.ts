import type { Answers, Body, Parameter } from '../../http/description.ts';
import type { Security } from './security.ts';
import type { Refusal } from './error-responses.ts';

/** What a document says of a method of a path. */
export interface Operation {
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly deprecated?: boolean;
  /** Undefined where it is as everywhere. */
  readonly security?: Security | undefined;
  readonly parameters: readonly Parameter[];
  readonly body?: Body | undefined;
  readonly answers: Answers;
  /** By status. */
  readonly refusals: ReadonlyMap<number, Refusal>;
  /** `x-…`. */
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** What a document says of the whole. */
export interface Description {
  readonly title: string;
  readonly description: string;
  readonly version: string;
  readonly tags: readonly Tag[];
  readonly operations: readonly Operation[];
}

/** The same, as it begins. */
export interface Head {
  readonly info: object;
  readonly tags: readonly Tag[];
}

const license = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' };

export const headOf = ({ title, description, version, tags }: Omit<Description, 'operations'>): Head => ({
  info: { title, description, version, license },
  tags,
});

/** By name, in the order of the alphabet. */
export const sorted = <T>(all: ReadonlyMap<string, T>): Readonly<Record<string, T>> =>
  Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** The operations by path and method, each as `write` has it. */
export const byPath = (operations: readonly Operation[], write: (operation: Operation) => object): object =>
  Object.fromEntries(
    [...Map.groupBy(operations, ({ path }) => path)].map(([path, those]) => [
      path,
      Object.fromEntries(those.map((one) => [one.method, write(one)])),
    ]),
  );
