import type { Request } from 'express';
import { badRequest, tooLarge, unsupportedMediaType } from '../../runtime/errors.ts';
import { parseJSON } from './parse-json.ts';
import { readBody } from '../../runtime/read-body.ts';

export interface JsonBody {
  /** Without parameters, in lower case. */
  readonly contentType: string;
  /** Undefined if there is no body. */
  readonly value: unknown;
}

const maxSize = 64 * 1024;

/**
 * Reads the body of a request: JSON of one of these media types; without Content-Type it is the first of them. Call it only after the
 * request is authorized: parsing costs the event loop time. Throws 415, 413 and 400, whose messages quote nothing of the body. The
 * deadline of the request ends a body that does not arrive.
 */
export async function readJson(req: Request, mediaTypes: readonly string[]): Promise<JsonBody> {
  const [type = ''] = (req.headers['content-type'] ?? mediaTypes[0] ?? '').toLowerCase().split(';');
  const contentType = type.trim();
  if (!mediaTypes.includes(contentType) || !/^identity$/i.test(req.headers['content-encoding'] ?? 'identity'))
    throw unsupportedMediaType(mediaTypes);
  const bytes = await readBody(req, maxSize, () => tooLarge(`the body must not be larger than ${maxSize} bytes`));
  if (bytes.length === 0) return { contentType, value: undefined };
  try {
    return { contentType, value: parseJSON(bytes) };
  } catch (error) {
    throw badRequest(`the body ${(error as SyntaxError).message}`);
  }
}

export const recordOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
