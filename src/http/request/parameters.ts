/** Query parameters: one schema describes the parameters, parses them and provides their types. */
import { z } from 'zod';
import { errorMap, issuesOf, nearest } from '../../config/error-map.ts';
import { badRequest, StatusError, type StatusCause } from '../../runtime/errors.ts';
import { describeProblems, maxProblems } from '../../runtime/problems.ts';
import type { ParameterDescription } from '../route.ts';
import { text, type Immutable } from '../schema.ts';

export interface QueryParameters<Q> {
  readonly descriptions: readonly ParameterDescription[];
  /** Throws a StatusError 400 that lists all problems. */
  parse(query: URLSearchParams): Q;
}

/** Schemas by parameter name. Each schema has a description. */
export type Shape = Readonly<Record<string, z.ZodType>>;
export type Values<S extends Shape> = Immutable<z.output<z.ZodObject<S, z.core.$strict>>>;

/** Maximum characters of a value in a message. */
const maxShown = 64;

/** Returns a value in quotes for messages. */
export const shown = (value: string): string =>
  JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value);

/**
 * Returns the schema of a parameter that `decode` converts from text to `T`. `decode` returns undefined for invalid
 * text. The error message then contains `expected` and ends with `hint`.
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
      const message = `expected ${expected}, got ${shown(given)}${hint(given)}`;
      context.issues.push({ code: 'custom', message, input: given });
      return z.NEVER;
    },
    encode: String,
  });

const flags: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false };

export const flagParameter = decoded(z.boolean(), 'true (or 1) or false (or 0)', (given) =>
  Object.hasOwn(flags, given) ? flags[given] : undefined,
);

/** Integer between `min` and `max`, both inclusive. */
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

const isListSchema = (schema: z.ZodType): boolean =>
  schema instanceof z.ZodArray ||
  ((schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) && schema.unwrap() instanceof z.ZodArray);

/**
 * Returns the schemas by name. `isList` is true if the parameter is allowed to repeat. `isList` is computed once,
 * because instanceof is slow for schemas.
 */
const knownIn = (shape: Shape) =>
  new Map(Object.entries(shape).map(([name, schema]) => [name, { schema, isList: isListSchema(schema) }]));

/** Messages for parameters that are not in the shape, by name. */
type Hints = Readonly<Record<string, string>>;

/**
 * Adds the values of a query to `values`, which contains the defaults. `missing`: problems of an empty query, one for
 * each required parameter.
 */
type Read = (query: URLSearchParams, values: Record<string, unknown>, missing: Problems) => void;

function parametersOf<const S extends Shape>(shape: S, read: Read): QueryParameters<Values<S>> {
  const emptyQuery = emptyQueryOf(shape);
  return {
    get descriptions() {
      return descriptionsOf(shape);
    },
    parse(query) {
      const { values: defaults, missing } = emptyQuery();
      if (query.size === 0 && missing.size === 0) return defaults as Values<S>;
      const values = { ...defaults };
      read(query, values, missing);
      return values as Values<S>;
    },
  };
}

/**
 * Parses a query strictly: refuses unknown parameters, and repeated parameters that are not lists. If a schema throws a
 * StatusError, the problem of the parameter has the message of that error.
 */
export function queryParameters<const S extends Shape>(shape: S, hints: Hints = {}): QueryParameters<Values<S>> {
  const known = knownIn(shape);
  return parametersOf(shape, (query, values, missing) => {
    const problems: Problems = new Map([...missing].filter(([name]) => !query.has(name)));
    const seen = new Set<string>();
    for (const [name, given] of query) {
      const parameter = known.get(name);
      if (parameter === undefined && seen.has(name)) continue;
      // Problems beyond `maxProblems` are not shown, and finding the closest match takes time.
      if (parameter === undefined)
        problems.set(name, problems.size < maxProblems ? unknownParameter(name, Object.keys(shape), hints) : '');
      else if (!seen.has(name))
        values[name] = parsed(name, parameter.schema, parameter.isList ? query.getAll(name) : given, problems);
      else if (!parameter.isList) problems.set(name, 'is given more than once');
      seen.add(name);
    }
    if (problems.size > 0) throw badParameters(causesOf(problems));
  });
}

/**
 * Parses the query of a standard path. Unknown parameters and repetitions are ignored, because clients send further
 * parameters to such paths. The schemas must accept any text or throw StatusErrors.
 */
export function lenientParameters<const S extends Shape>(shape: S): QueryParameters<Values<S>> {
  const known = knownIn(shape);
  return parametersOf(shape, (query, values) => {
    for (const [name, { schema, isList }] of known)
      if (query.has(name)) values[name] = schema.parse(isList ? query.getAll(name) : query.get(name));
  });
}

/**
 * The first message of each parameter, by name, so that the items of one list do not hide the problems of other
 * parameters.
 */
type Problems = Map<string, string>;

interface EmptyQuery {
  /** Values that all queries without parameters share. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Problems of an empty query: one for each required parameter. */
  readonly missing: Problems;
}

/** Returns a function that returns the result of an empty query, computed on the first call. */
function emptyQueryOf(shape: Shape): () => EmptyQuery {
  let empty: EmptyQuery | undefined;
  const compute = (): EmptyQuery => {
    const missing: Problems = new Map();
    const values = Object.entries(shape).map(([name, schema]) => [name, parsed(name, schema, undefined, missing)]);
    return { values: Object.freeze(Object.fromEntries(values) as EmptyQuery['values']), missing };
  };
  return () => (empty ??= compute());
}

/** Returns the value, or adds a problem and returns undefined. */
function parsed(name: string, schema: z.ZodType, given: unknown, problems: Problems): unknown {
  try {
    const { success, data, error } = schema.safeParse(given, { error: errorMap });
    if (success) return data;
    problems.set(name, error.issues[0]?.message ?? '');
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    problems.set(name, error.message);
  }
  return undefined;
}

/**
 * Returns a parser that caches its results per query object, which requests with the same target share
 * (filters/routing.ts). The results must not be modified, and must not depend on the time.
 */
export function memoizedParser<Q extends object>(parameters: QueryParameters<Q>): (query: URLSearchParams) => Q {
  const results = new WeakMap<URLSearchParams, Q>();
  return (query) => {
    let result = results.get(query);
    if (result === undefined) results.set(query, (result = parameters.parse(query)));
    return result;
  };
}

/**
 * Parameters that the handler parses itself, because the accepted parameters depend on the verb or the resource of the
 * request.
 */
export const parsedByHandler = (descriptions: readonly ParameterDescription[]): QueryParameters<undefined> => ({
  descriptions,
  parse: () => undefined,
});

/** Returns true if the parameter is optional. */
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
  field: field.slice(0, maxShown),
  message,
});

/** Maximum number of known parameters in a message. Shapes list the most common parameters first. */
const maxListed = 6;

const causesOf = (problems: Problems): readonly StatusCause[] =>
  [...problems].map(([name, message]) => invalidParameter(name, message));

function unknownParameter(name: string, known: readonly string[], hints: Hints): string {
  if (Object.hasOwn(hints, name)) return hints[name] as string;
  const near = nearest(name, known);
  if (near !== undefined) return `unknown parameter; did you mean ${near}?`;
  const listed = known.slice(0, maxListed).join(', ');
  return `unknown parameter; known parameters ${known.length > maxListed ? 'include' : 'are'} ${listed}`;
}

/** Returns the problems of a JSON body. Problems of the body as a whole have the field `body`. */
export const bodyProblems = (error: z.ZodError): readonly StatusCause[] =>
  issuesOf(error).map(({ path, message }) => invalidParameter(path.join('.') || 'body', message));

/** Returns a 400 error that lists the problems of a query or a body. */
export const badParameters = (problems: readonly StatusCause[]): Error =>
  badRequest(
    describeProblems(problems, ({ field, message }) => `${field}: ${message}`),
    { details: { causes: problems } },
  );
