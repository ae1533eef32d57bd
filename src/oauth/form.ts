import type { Request } from 'express';
import { OAuthError } from '../errors.ts';
import { readBody } from './body.ts';

/**
 * The form of a request to an OAuth endpoint. RFC 6749 section 3.2: parameters without a value are treated as omitted, none may
 * be repeated; a bearer never stands in a form. Throws OAuthError 415, 413, 408 or 400.
 */
export async function readForm(req: Request, wait?: number): Promise<ReadonlyMap<string, string>> {
  const text = await readBody(req, 'application/x-www-form-urlencoded', wait);
  const form = new Map<string, string>();
  for (const pair of text.split('&')) {
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
