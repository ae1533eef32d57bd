/**
 * zod schemas of requests and responses. The schemas parse values, provide the TypeScript types and generate the API
 * descriptions (docs/openapi). They therefore use only features that Swagger 2.0 can express.
 */
import { z } from 'zod';

/** A schema of values of type `T`. */
export type Schema<T = unknown> = z.ZodType<T>;

export type Immutable<T> = T extends readonly (infer I)[]
  ? readonly Immutable<I>[]
  : T extends (...given: never) => unknown
    ? T
    : T extends object
      ? { readonly [K in keyof T]: Immutable<T[K]> }
      : T;

/** Values that match the schema. */
export type TypeOf<S extends z.ZodType> = Immutable<z.output<S>>;

type Properties = Readonly<Record<string, z.ZodType>>;

export const text = z.string();
export const flag = z.boolean();
export const integer = z.int();
export const count = z.int().min(0);
/** RFC 3339 time. */
export const time = z.string().meta({ format: 'date-time' });
export const anything = z.unknown();
export const anyObject = z.record(text, anything);

export const oneOf = <const T extends string>(...values: readonly T[]) => z.enum(values);
/**
 * One of the values, or the empty string for none. The schema only describes the values; another server or parser
 * validates them.
 */
export const oneOrNone = (...values: readonly string[]) => text.meta({ pattern: `^(?:${values.join('|')})?$` });
export const list = <S extends z.ZodType>(items: S) => z.array(items);
export const mapOf = <S extends z.ZodType>(values: S) => z.record(text, values);

// oxlint-disable-next-line no-generated-empty-object-type -- an index signature would admit any property
type NoProperties = Readonly<Record<never, never>>;
type Optional<O extends Properties> = { -readonly [K in keyof O]: z.ZodOptional<O[K]> };

/** Object with these properties and no others. */
export const object = <const R extends Properties, const O extends Properties = NoProperties>(
  required: R,
  optional?: O,
) =>
  z.strictObject({
    ...required,
    ...(Object.fromEntries(
      Object.entries(optional ?? {}).map(([name, schema]) => [name, schema.optional()]),
    ) as Optional<O>),
  });

/** One of these objects. */
export const eitherOf = <const S extends readonly [z.ZodType, ...z.ZodType[]]>(...schemas: S) =>
  z.union(schemas).meta({ type: 'object' });

/** Allows further properties. */
export const open = <S extends z.core.$ZodLooseShape>(schema: z.ZodObject<S, z.core.$strict>) => schema.loose();
/** Allows further string properties. */
export const others = (schema: z.ZodObject) => schema.catchall(text);

export const notEmpty = (schema: Schema): Schema => (schema instanceof z.ZodString ? schema.min(1) : schema);

/**
 * Removes the default of a parameter that depends on another parameter. Otherwise, a client that sends defaults would
 * send this parameter without the parameter on which it depends.
 */
export const withoutDefault = (schema: Schema): Schema =>
  schema instanceof z.ZodDefault ? (schema.unwrap() as Schema) : schema;

export const described = <S extends z.ZodType>(description: string, schema: S): S => schema.describe(description);

/** Names the schema, so that API descriptions define it once. */
export const named = <S extends z.ZodType>(id: string, schema: S): S => schema.meta({ id });
