/** Parameters of a query: one schema describes them, parses them and gives their types. */
import { z } from 'zod';
import { errorMap, nearest } from '../../config/error-map.ts';
import { badRequest, type StatusCause } from '../../runtime/errors.ts';
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

const isList = (schema: z.ZodType | undefined): boolean =>
  schema instanceof z.ZodArray ||
  ((schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) && schema.unwrap() instanceof z.ZodArray);

/** A query with these parameters. Others are refused, and so is one that is given more than once, unless it is a list. */
export function queryParameters<const S extends Shape>(shape: S): QueryParameters<Values<S>> {
  const names = Object.keys(shape);
  const schema = z.strictObject(shape);
  return {
    descriptions: descriptionsOf(shape),
    parse(query) {
      const problems = repeatedIn(query, shape);
      const { success, data, error } = schema.safeParse(valuesOf(query, shape), { error: errorMap });
      if (success && problems.length === 0) return data as Values<S>;
      for (const issue of error?.issues ?? [])
        if (issue.code === 'unrecognized_keys') problems.push(...issue.keys.map((key) => unknownParameter(key, names)));
        else problems.push(invalidParameter(String(issue.path[0]), issue.message));
      throw badParameters(problems);
    },
  };
}

/** A query of a standard path, which clients send further parameters to: those, and repetitions, are ignored. */
export function lenientParameters<const S extends Shape>(shape: S): QueryParameters<Values<S>> {
  const schema = z.object(shape);
  return {
    descriptions: descriptionsOf(shape),
    parse: (query) => schema.parse(valuesOf(query, shape)) as Values<S>,
  };
}

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

function valuesOf(query: URLSearchParams, shape: Shape): Readonly<Record<string, unknown>> {
  // Without a prototype: a parameter may be called __proto__.
  const values = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of query) values[name] ??= isList(shape[name]) ? query.getAll(name) : value;
  return values;
}

function repeatedIn(query: URLSearchParams, shape: Shape): StatusCause[] {
  const names = [...query.keys()];
  const repeated = new Set(names.filter((name, at) => names.indexOf(name) !== at && !isList(shape[name])));
  return [...repeated].map((name) => invalidParameter(name, 'is given more than once'));
}

export const invalidParameter = (field: string, message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  field,
  message,
});

function unknownParameter(name: string, known: readonly string[]): StatusCause {
  const near = nearest(name, known);
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  return invalidParameter(
    name.slice(0, maxShown),
    `unknown parameter${hint}; known parameters are ${known.join(', ')}`,
  );
}

/** 400 with all problems of a query. */
export function badParameters(problems: readonly StatusCause[]): Error {
  const causes = problems.slice(0, maxProblems);
  const more = problems.length - causes.length;
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  return badRequest([...texts, ...(more === 0 ? [] : [`and ${more} more`])].join('; '), { details: { causes } });
}
