/** Parameters of a query: one schema describes them, parses them and gives their types. */
import { z } from 'zod';
import { errorMap, issuesOf, nearest } from '../../config/error-map.ts';
import { badRequest, StatusError, type StatusCause } from '../../runtime/errors.ts';
import { describeProblems, maxProblems } from '../../runtime/problems.ts';
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

/** `takesAll`: the parameter may be repeated. Determined once, because instanceof is slow for schemas. */
const knownIn = (shape: Shape) =>
  new Map(Object.entries(shape).map(([name, schema]) => [name, { schema, takesAll: isList(schema) }]));

/** Messages for parameters that are not in the shape, by name. */
type Hints = Readonly<Record<string, string>>;

/** Adds what a query has to the values of one without parameters. `missing`: parameters that it must have. */
type Read = (query: URLSearchParams, values: Record<string, unknown>, missing: Problems) => void;

function parametersOf<const S extends Shape>(shape: S, read: Read): QueryParameters<Values<S>> {
  const absent = absentOf(shape);
  return {
    get descriptions() {
      return descriptionsOf(shape);
    },
    parse(query) {
      const { values: defaults, missing } = absent();
      if (query.size === 0 && missing.size === 0) return defaults as Values<S>;
      const values = { ...defaults };
      read(query, values, missing);
      return values as Values<S>;
    },
  };
}

/**
 * A query with these parameters. Others are refused, and so is one that is given more than once, unless it is a list. A schema may throw
 * a StatusError: its message becomes that of the parameter.
 */
export function queryParameters<const S extends Shape>(shape: S, hints: Hints = {}): QueryParameters<Values<S>> {
  const known = knownIn(shape);
  return parametersOf(shape, (query, values, missing) => {
    const problems: Problems = new Map([...missing].filter(([name]) => !query.has(name)));
    const seen = new Set<string>();
    for (const [name, given] of query) {
      const parameter = known.get(name);
      if (parameter === undefined && seen.has(name)) continue;
      // Finding the closest match takes time, and no more problems than this are shown.
      if (parameter === undefined)
        problems.set(name, problems.size < maxProblems ? unknownParameter(name, Object.keys(shape), hints) : '');
      else if (!seen.has(name))
        values[name] = parsed(name, parameter.schema, parameter.takesAll ? query.getAll(name) : given, problems);
      else if (!parameter.takesAll) problems.set(name, 'is given more than once');
      seen.add(name);
    }
    if (problems.size > 0) throw badParameters(causesOf(problems));
  });
}

/**
 * A query of a standard path, which clients send further parameters to: those, and repetitions, are ignored. Its schemas take any text, or
 * throw StatusErrors.
 */
export function lenientParameters<const S extends Shape>(shape: S): QueryParameters<Values<S>> {
  const known = knownIn(shape);
  return parametersOf(shape, (query, values) => {
    for (const [name, { schema, takesAll }] of known)
      if (query.has(name)) values[name] = schema.parse(takesAll ? query.getAll(name) : query.get(name));
  });
}

/** The first message of each parameter by its name: the items of one list must not hide the problems of other parameters. */
type Problems = Map<string, string>;

interface Absent {
  /** Shared by all queries without parameters. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Required parameters. */
  readonly missing: Problems;
}

/** Returns the values of parameters that a query does not have, which are found on the first call. */
function absentOf(shape: Shape): () => Absent {
  let absent: Absent | undefined;
  const find = (): Absent => {
    const missing: Problems = new Map();
    const values = Object.entries(shape).map(([name, schema]) => [name, parsed(name, schema, undefined, missing)]);
    return { values: Object.freeze(Object.fromEntries(values) as Absent['values']), missing };
  };
  return () => (absent ??= find());
}

/** Returns the value, or adds what is wrong to the problems. */
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
  field: field.slice(0, maxShown),
  message,
});

const causesOf = (problems: Problems): readonly StatusCause[] =>
  [...problems].map(([name, message]) => invalidParameter(name, message));

function unknownParameter(name: string, known: readonly string[], hints: Hints): string {
  if (Object.hasOwn(hints, name)) return hints[name] as string;
  const near = nearest(name, known);
  const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
  return `unknown parameter${hint}; known parameters are ${known.join(', ')}`;
}

/** Problems of a body in JSON; `body` is the field of those of the whole. */
export const bodyProblems = (error: z.ZodError): readonly StatusCause[] =>
  issuesOf(error).map(({ path, message }) => invalidParameter(path.join('.') || 'body', message));

/** 400 with the problems of a query or a body. */
export const badParameters = (problems: readonly StatusCause[]): Error =>
  badRequest(
    describeProblems(problems, ({ field, message }) => `${field}: ${message}`),
    { details: { causes: problems } },
  );
