/** Parameters of a query: one schema describes them, parses them and gives their types. */
import { z } from 'zod';
import { errorMap, nearest } from '../../config/error-map.ts';
import { badRequest, StatusError, type StatusCause } from '../../runtime/errors.ts';
import type { ParameterDescription } from '../route.ts';
import { text, type Immutable } from '../schema.ts';

export interface QueryParameters<Q> {
  readonly descriptions: readonly ParameterDescription[];
  /** Throws StatusError 400, which names all problems. */
  parse(query: URLSearchParams): Q;
}

/** Schemas of the parameters by name; each has a description. */
export type Shape = Readonly<Record<string, z.ZodType>>;
export type Values<S extends Shape> = Immutable<z.output<z.ZodObject<S, z.core.$strict>>>;

/** Causes in a response: a form may have more problems than anybody reads. */
const maxProblems = 20;
/** Characters of a value in a message. */
const maxShown = 64;

/** A value as messages show it. */
export const shown = (value: string): string =>
  JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value);

/**
 * A parameter that is text in a query and `T` in the program. `decode` returns undefined for a text that is not `expected`; `hint` ends
 * the message then.
 */
export const decoded = <T extends z.ZodType>(
  value: T,
  expected: string,
  decode: (given: string) => z.input<T> | undefined,
  hint = (_given: string): string => '',
) =>
  z.codec(text, value, {
    decode(given, context) {
      const found = decode(given);
      if (found !== undefined) return found;
      const message = `must be ${expected}, not ${shown(given)}${hint(given)}`;
      context.issues.push({ code: 'custom', message, input: given });
      return z.NEVER;
    },
    encode: String,
  });

const flags: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false };

export const flagParameter = decoded(z.boolean(), 'true (or 1) or false (or 0)', (given) =>
  Object.hasOwn(flags, given) ? flags[given] : undefined,
);

/** An integer of at least `min` and at most `max`. */
export const integerParameter = (
  { min, max = Number.MAX_SAFE_INTEGER }: { readonly min: number; readonly max?: number },
  expected: string,
  hint?: (given: string) => string,
) =>
  decoded(
    z.int().min(min).max(max),
    expected,
    (given) => {
      const value = /^(?:-(?!0+$))?\d{1,16}$/.test(given) ? Number(given) : NaN;
      return Number.isSafeInteger(value) && value >= min && value <= max ? value : undefined;
    },
    hint,
  );

const isList = (schema: z.ZodType): boolean =>
  schema instanceof z.ZodArray ||
  ((schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) && schema.unwrap() instanceof z.ZodArray);

/** Messages for parameters that are not in the shape, by name. */
type Hints = Readonly<Record<string, string>>;

/**
 * A query with these parameters. Others are refused, and so is one that is given more than once, unless it is a list. A schema may throw
 * a StatusError: its message becomes that of the parameter.
 */
export function queryParameters<const S extends Shape>(shape: S, hints: Hints = {}): QueryParameters<Values<S>> {
  const parameters = new Parameters(shape);
  return {
    get descriptions() {
      return descriptionsOf(shape);
    },
    parse(query) {
      const { absent, missing } = parameters;
      if (query.size === 0 && missing.size === 0) return absent as Values<S>;
      const problems: Problems = new Map([...missing].filter(([name]) => !query.has(name)));
      const values = parameters.read(query, {
        parse: (name, schema, given) => parsed(name, schema, given, problems),
        repeated: (name) => problems.set(name, ['is given more than once']),
        // The closest match takes time to find, and only so many problems are shown.
        unknown: (name) =>
          problems.set(name, problems.size < maxProblems ? [unknownParameter(name, Object.keys(shape), hints)] : ['']),
      });
      if (problems.size === 0) return values as Values<S>;
      throw badParameters(
        [...problems].flatMap(([name, messages]) =>
          messages.map((message) => invalidParameter(name.slice(0, maxShown), message)),
        ),
      );
    },
  };
}

/**
 * A query of a standard path, which clients send further parameters to: those, and repetitions, are ignored. Its schemas take any text, or
 * throw StatusErrors.
 */
export function lenientParameters<const S extends Shape>(shape: S): QueryParameters<Values<S>> {
  const parameters = new Parameters(shape);
  return {
    get descriptions() {
      return descriptionsOf(shape);
    },
    parse: (query) => (query.size === 0 ? parameters.absent : parameters.read(query, lenient)) as Values<S>,
  };
}

/** Messages by the name of the parameter. */
type Problems = Map<string, readonly string[]>;

/** What is done with the parameters of a query. */
interface Reading {
  readonly parse: (name: string, schema: z.ZodType, given: string | string[]) => unknown;
  /** Called for the second value of a parameter that is not a list, and for further ones. */
  readonly repeated: (name: string) => void;
  readonly unknown: (name: string) => void;
}

const ignore = (): void => undefined;
const lenient: Reading = { parse: (_, schema, given) => schema.parse(given), repeated: ignore, unknown: ignore };

/** Parses only the parameters that a query has: the values of the others are found out once. */
class Parameters {
  readonly #byName: ReadonlyMap<string, { readonly schema: z.ZodType; readonly isList: boolean }>;
  #absent: Readonly<Record<string, unknown>> | undefined;
  readonly #missing: Problems = new Map();

  constructor(shape: Shape) {
    const entries = Object.entries(shape);
    this.#byName = new Map(entries.map(([name, schema]) => [name, { schema, isList: isList(schema) }]));
  }

  /** The values of a query without parameters, which all such requests share. */
  get absent(): Readonly<Record<string, unknown>> {
    this.#absent ??= Object.freeze(
      Object.fromEntries(
        [...this.#byName].map(([name, { schema }]) => [name, parsed(name, schema, undefined, this.#missing)]),
      ),
    );
    return this.#absent;
  }

  /** Messages for required parameters, by name. */
  get missing(): ReadonlyMap<string, readonly string[]> {
    return this.absent && this.#missing;
  }

  read(query: URLSearchParams, { parse, repeated, unknown }: Reading): Readonly<Record<string, unknown>> {
    const values: Record<string, unknown> = { ...this.absent };
    const seen = new Set<string>();
    for (const [name, given] of query) {
      const parameter = this.#byName.get(name);
      if (parameter === undefined) unknown(name);
      else if (!seen.has(name)) {
        seen.add(name);
        values[name] = parse(name, parameter.schema, parameter.isList ? query.getAll(name) : given);
      } else if (!parameter.isList) repeated(name);
    }
    return values;
  }
}

/** Returns the value, or adds what is wrong to the problems. */
function parsed(name: string, schema: z.ZodType, given: unknown, problems: Problems): unknown {
  try {
    const { success, data, error } = schema.safeParse(given, { error: errorMap });
    if (success) return data;
    problems.set(
      name,
      error.issues.map(({ message }) => message),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    problems.set(name, [error.message]);
  }
  return undefined;
}

/** Parameters that the handler parses itself, because they depend on the verb or the resource of the request. */
export const parsedByHandler = (descriptions: readonly ParameterDescription[]): QueryParameters<undefined> => ({
  descriptions,
  parse: () => undefined,
});

/** Returns whether the parameter may be left out. */
export const isOptional = (schema: z.ZodType): boolean => schema.safeParse(undefined).success;

export const descriptionsOf = (shape: Shape): readonly ParameterDescription[] =>
  Object.entries(shape).map(([name, schema]) => ({
    name,
    in: 'query',
    description: schema.description ?? '',
    ...(isOptional(schema) ? {} : { required: true }),
    schema,
  }));

export const invalidParameter = (field: string, message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  field,
  message,
});

function unknownParameter(name: string, known: readonly string[], hints: Hints): string {
  if (Object.hasOwn(hints, name)) return hints[name] as string;
  const near = nearest(name, known);
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  return `unknown parameter${hint}; known parameters are ${known.join(', ')}`;
}

/** 400 with all problems of a query. */
export function badParameters(problems: readonly StatusCause[]): Error {
  const causes = problems.slice(0, maxProblems);
  const more = problems.length - causes.length;
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  return badRequest([...texts, ...(more === 0 ? [] : [`and ${more} more`])].join('; '), { details: { causes } });
}
