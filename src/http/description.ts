/** What a route says of itself beside what serves it. */
import { text, type Schema } from './schema.ts';

export interface ParameterDescription {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

/** By media type. */
export type ContentDescription = Readonly<Record<string, Schema>>;

export interface BodyDescription {
  readonly description?: string;
  readonly required: boolean;
  readonly content: ContentDescription;
}

export interface ResponseDescription {
  readonly description: string;
  readonly content?: ContentDescription;
  /** Those that a client has to know, by name, each with what it says. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** By status. */
export type ResponseDescriptions = Readonly<Record<number, ResponseDescription>>;

export const inQuery = (name: string, description: string, schema: Schema = text): ParameterDescription => ({
  name,
  in: 'query',
  description,
  schema,
});

/** What a segment of a path can be (filters/request-info.ts). */
const segment: Schema<string> = {
  ...text,
  // Not `.` and not `..`, in words that Go's regexp has too: those who generate clients in Go refuse others.
  pattern: String.raw`^(?:[^./\\\x00-\x1f\x7f-\x9f]|\.[^./\\\x00-\x1f\x7f-\x9f]|\.\.[^/\\\x00-\x1f\x7f-\x9f])[^/\\\x00-\x1f\x7f-\x9f]*$`,
};

export const inPath = (name: string, description: string): ParameterDescription => ({
  name,
  in: 'path',
  description,
  required: true,
  schema: segment,
});

export const inHeader = (name: string, description: string, schema: Schema = text): ParameterDescription => ({
  name,
  in: 'header',
  description,
  schema,
});

/** 200 with a document in JSON. */
export const json = (schema: Schema, description = 'OK'): ResponseDescriptions => ({
  200: { description, content: { 'application/json': schema } },
});
