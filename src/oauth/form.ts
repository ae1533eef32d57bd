import express, { type Request, type Response } from 'express';
import { OAuthError } from '../errors.ts';

const mediaType = 'application/x-www-form-urlencoded';
const limit = 64 * 1024;

/** RFC 6749 appendix B knows UTF-8 only. */
const accepted = new RegExp(`^${mediaType}\\s*(;\\s*(charset="?utf-8"?\\s*)?)?$`, 'i');
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const read = express.raw({ type: mediaType, limit });

/**
 * The form of a request to an OAuth endpoint. RFC 6749 section 3.2: parameters without a value are treated as omitted, none may
 * be repeated; a bearer never stands in a form. Throws OAuthError 415, 413 or 400.
 */
export async function readForm(req: Request, res: Response): Promise<ReadonlyMap<string, string>> {
  if (!accepted.test(req.headers['content-type'] ?? ''))
    throw new OAuthError('invalid_request', `the body must be ${mediaType} in UTF-8`, { status: 415 });
  await new Promise<void>((resolve, reject) => {
    read(req, res, (error?: unknown) => {
      if (error === undefined) resolve();
      else reject(error instanceof Error ? error : new Error('the body cannot be read', { cause: error }));
    });
  });
  const body: unknown = req.body;
  const form = new Map<string, string>();
  for (const pair of textOf(Buffer.isBuffer(body) ? body : Buffer.alloc(0)).split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode(at === -1 ? pair : pair.slice(0, at));
    const value = at === -1 ? '' : decode(pair.slice(at + 1));
    if (form.has(name)) throw new OAuthError('invalid_request', `the parameter ${JSON.stringify(name)} is repeated`);
    form.set(name, value);
  }
  if (form.has('access_token'))
    throw new OAuthError('invalid_request', 'an access token belongs in the Authorization header, never in a form');
  for (const [name, value] of form) if (value === '') form.delete(name);
  return form;
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'the form is no UTF-8');
  }
}

/** RFC 6749 appendix B: UTF-8, percent-encoded, a plus for a space. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new OAuthError('invalid_request', 'the form has a bad percent-encoding or is no UTF-8');
  }
}

/** A parameter that must be there. */
export function required(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError('invalid_request', `the parameter "${name}" is missing`);
  return value;
}
