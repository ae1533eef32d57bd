import type { Request } from 'express';
import { errorMap } from '../../config/error-map.ts';
import { badRequest, tooLarge, unsupportedEncoding, unsupportedMediaType } from '../../runtime/errors.ts';
import { readBody } from '../../runtime/promises.ts';
import type { BodyDescription, RequestContext } from '../route.ts';
import type { Schema, TypeOf } from '../schema.ts';
import { chunksOf } from './body-chunks.ts';
import { badParameters, bodyProblems } from './parameters.ts';
import { parseJSON } from './parse-json.ts';
import { parseYAML } from './parse-yaml.ts';

/** Describes and reads a request body. */
export interface RequestBody<B> {
  readonly description: BodyDescription;
  /**
   * Reads the body. Called only after authorization, because parsing blocks the event loop. Throws StatusError 400,
   * 408, 413 and 415.
   */
  read(req: Request, context: Pick<RequestContext, 'arrival'>): Promise<B>;
}

export interface JSONValue {
  /**
   * Media type in lower case, without parameters. For a YAML body, `contentType` is the first media type that the route
   * accepts.
   */
  readonly contentType: string;
  /** Value; undefined if there is no body. */
  readonly value: unknown;
}

const maxSize = 64 * 1024;
const mediaType = 'application/json';
const yaml = 'application/yaml';

export const recordOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;

/** Body that must match the schema. */
export const jsonBody = <S extends Schema>(schema: S): RequestBody<TypeOf<S>> => ({
  description: { required: true, content: { [mediaType]: schema } },
  async read(req) {
    const { value } = await readJSON(req, [mediaType]);
    const { success, data, error } = schema.safeParse(value, { error: errorMap });
    if (success) return data as TypeOf<S>;
    throw badParameters(bodyProblems(error));
  },
});

/** Body that kube-apiserver validates. */
export const unparsedBody = (content: BodyDescription['content'], required = true): RequestBody<JSONValue> => ({
  description: { required, content },
  read: (req) => readJSON(req, Object.keys(content)),
});

/**
 * Reads JSON or YAML of one of these media types. A body without a Content-Type is read as the first of these types.
 * Messages name unknown keys, but never quote a value, which may be a password. The deadline of the request also limits
 * the time until the body has arrived.
 */
async function readJSON(req: Request, mediaTypes: readonly string[]): Promise<JSONValue> {
  const [type = '', ...parameters] = (req.headers['content-type'] ?? mediaTypes[0] ?? '').toLowerCase().split(';');
  const contentType = type.trim();
  if (!mediaTypes.includes(contentType)) throw unsupportedMediaType(mediaTypes);
  if (parameters.some((parameter) => /^\s*charset\s*=(?!\s*"?utf-8"?\s*$)/.test(parameter)))
    throw unsupportedEncoding('the body must be in UTF-8');
  if (!/^identity$/i.test(req.headers['content-encoding'] ?? 'identity'))
    throw unsupportedEncoding('the body must not be compressed');
  const bytes = await readBody(chunksOf(req), maxSize, () =>
    tooLarge(`the body must not be larger than ${maxSize} bytes`),
  );
  if (bytes.length === 0) return { contentType, value: undefined };
  try {
    return contentType === yaml
      ? { contentType: mediaTypes[0] ?? mediaType, value: parseYAML(bytes) }
      : { contentType, value: parseJSON(bytes) };
  } catch (error) {
    throw badRequest(`the body ${(error as SyntaxError).message}`);
  }
}
