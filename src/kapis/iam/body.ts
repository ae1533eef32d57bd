import type { Request } from 'express';
import { badRequest, tooLarge, unsupportedMediaType } from '../../errors.ts';
import { readBody } from '../../kube/read-body.ts';

export interface JsonBody {
  /** Without parameters, in lower case. */
  readonly contentType: string;
  /** Undefined if there is no body. */
  readonly value: unknown;
}

const largest = 1024 * 1024;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The body of a request: JSON of one of these media types, the first of which also stands for none. Throws 415, 413 and 400, never with
 * anything of the body, which may hold a password. The deadline of the request ends one that does not come.
 */
export async function readJson(req: Request, mediaTypes: readonly string[]): Promise<JsonBody> {
  const [contentType = ''] = (req.headers['content-type'] ?? mediaTypes[0] ?? '').toLowerCase().split(';');
  if (!mediaTypes.includes(contentType.trim()) || !/^identity$/i.test(req.headers['content-encoding'] ?? 'identity'))
    throw unsupportedMediaType(mediaTypes);
  const bytes = await readBody(req, largest, () => tooLarge(`the body must not be larger than ${largest} bytes`));
  if (bytes.length === 0) return { contentType: contentType.trim(), value: undefined };
  try {
    return { contentType: contentType.trim(), value: JSON.parse(utf8.decode(bytes)) as unknown };
  } catch {
    throw badRequest('the body is no JSON in UTF-8');
  }
}

export const recordOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
