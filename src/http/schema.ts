/**
 * JSON Schema (2020-12) of what crosses the wire, each with the TypeScript type of it: the handlers are typed by what is described. Only
 * such words are used as Swagger 2.0 has too, or can be told in its own.
 */

declare const typed: unique symbol;
const name = Symbol('name');

/** `T`: what it lets through. */
export type Schema<T = unknown> = Readonly<Record<string, unknown>> & {
  readonly [typed]?: T;
  readonly [name]?: string;
};

export type TypeOf<S> = S extends { readonly [typed]?: infer T } ? Exclude<T, undefined> : never;

type Properties = Readonly<Record<string, Schema>>;

type ObjectOf<R extends Properties, O extends Properties> = { readonly [K in keyof R]: TypeOf<R[K]> } & ([O] extends [
  never,
]
  ? unknown
  : {
      /** What is undefined JSON leaves out. */
      readonly [K in keyof O]?: TypeOf<O[K]> | undefined;
    });

export const text: Schema<string> = { type: 'string' };
export const flag: Schema<boolean> = { type: 'boolean' };
export const integer: Schema<number> = { type: 'integer' };
/** How many. */
export const count: Schema<number> = { type: 'integer', minimum: 0 };
/** RFC 3339. */
export const time: Schema<string> = { type: 'string', format: 'date-time' };

export const oneOf = <const T extends string>(...values: readonly T[]): Schema<T> => ({ type: 'string', enum: values });
/** The same where no text at all means that nothing is said. */
export const oneOrNone = (...values: readonly string[]): Schema<string> => ({
  type: 'string',
  pattern: `^(?:${values.join('|')})?$`,
});
export const list = <T>(items: Schema<T>): Schema<readonly T[]> => ({ type: 'array', items });
export const mapOf = <T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> => ({
  type: 'object',
  additionalProperties: values,
});

/** Nothing but these, of which the first have to be there. */
export const object = <const R extends Properties, const O extends Properties = never>(
  required: R,
  optional?: O,
): Schema<ObjectOf<R, O>> => ({
  type: 'object',
  ...(Object.keys(required).length === 0 ? {} : { required: Object.keys(required) }),
  properties: { ...required, ...optional },
  additionalProperties: false,
});

/** One of these objects, of which each has something that the others have not. */
export const eitherOf = <const S extends readonly Schema[]>(...schemas: S): Schema<TypeOf<S[number]>> => ({
  type: 'object',
  anyOf: schemas,
});

/** There may be more in it than is said. */
export const open = <T>(schema: Schema<T>): Schema<T & Readonly<Record<string, unknown>>> =>
  ({ ...schema, additionalProperties: true }) as Schema<T & Readonly<Record<string, unknown>>>;

export const described = <T>(description: string, schema: Schema<T>): Schema<T> => ({ ...schema, description });

/** The descriptions say it once, under this name, which is never of two. */
export const named = <T>(of: string, schema: Schema<T>): Schema<T> => ({ ...schema, [name]: of });

export const nameOf = (schema: Schema): string | undefined => schema[name];
