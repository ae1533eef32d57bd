import type { Request } from 'express';
import { OAuthError } from '../runtime/errors.ts';
import type { BodyDescription, Arrival } from '../http/route.ts';
import { named, notEmpty, object, others, type Schema } from '../http/schema.ts';
import { maxParameters } from '../runtime/redaction.ts';
import { readBody } from '../http/request/slow-body.ts';

const formType = 'application/x-www-form-urlencoded';
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What is in a form, as the descriptions have it; what else there is means nothing, but nothing is there twice. `formName`: of its schema. */
export function formBody(
  fields: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>>,
  formName?: string,
): BodyDescription {
  const must = Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, notEmpty(schema)]));
  const schema = others(object(must, optional));
  return { required: true, content: { [formType]: formName === undefined ? schema : named(formName, schema) } };
}

/**
 * The form of a request to an OAuth endpoint. RFC 6749 section 3.2: parameters without a value are treated as omitted, none may
 * be repeated; a bearer never stands in a form. Throws OAuthError 415, 413, 408 or 400, and StatusError 429.
 */
export async function readForm(req: Request, arrival?: Arrival, wait?: number): Promise<ReadonlyMap<string, string>> {
  const form = readParameters(pairsOf(textOf(await readBody(req, formType, arrival, wait))));
  if (form.has('access_token'))
    throw new OAuthError('invalid_request', 'an access token belongs in the Authorization header, never in a form');
  return form;
}

/** By the same rules those that stand in a URL (RFC 6749 section 3.1), or were brought back by a form of ours. */
export function readParameters(pairs: Iterable<readonly [string, string]>): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (all.has(name)) throw new OAuthError('invalid_request', `the parameter ${JSON.stringify(name)} is repeated`);
    all.set(name, value);
  }
  for (const [name, value] of all) if (value === '') all.delete(name);
  return all;
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'the body is no UTF-8');
  }
}

function pairsOf(text: string): [string, string][] {
  const pairs = text.split('&', maxParameters + 1);
  if (pairs.length > maxParameters)
    throw new OAuthError('invalid_request', `the form has more than ${maxParameters} parameters`);
  return pairs
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      return at === -1 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
    });
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
