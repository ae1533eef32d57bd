import type { Request } from 'express';
import { OAuthError } from '../runtime/errors.ts';
import type { Arrival } from '../http/route.ts';
import type { RequestBody } from '../http/request/json-body.ts';
import { readBody } from '../http/request/slow-body.ts';
import { named } from '../http/schema.ts';
import { maxParameters } from '../runtime/redaction.ts';
import { readParameters, type OAuthParameters } from './parameters.ts';

/** Fields of a form by name. A field without a value is omitted. */
export type Form = ReadonlyMap<string, string>;

const formType = 'application/x-www-form-urlencoded';
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Describes a form that is read but not parsed yet: some of the fields must first authenticate the client or the
 * browser.
 */
export const formBody = ({ schema }: OAuthParameters<unknown>, formName?: string): RequestBody<Form> => ({
  description: { required: true, content: { [formType]: formName === undefined ? schema : named(formName, schema) } },
  read: (req, { arrival }) => readForm(req, arrival),
});

/**
 * Reads the form of a request. Access tokens in a form (RFC 6750 section 2.2) are rejected. Throws OAuthError 415, 413,
 * 408 or 400, and StatusError 429.
 */
export async function readForm(req: Request, arrival?: Arrival, wait?: number): Promise<Form> {
  const form = readParameters(pairsOf(textOf(await readBody(req, formType, arrival, wait))));
  if (form.has('access_token'))
    throw new OAuthError('invalid_request', 'send the access token in the Authorization header, not in a form');
  return form;
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'the body is not UTF-8');
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

/** Decodes form encoding (RFC 6749 appendix B): percent-encoded UTF-8 with a plus for a space. */
export function decode(text: string, where = 'the form'): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new OAuthError('invalid_request', `${where} has invalid percent-encoding or is not UTF-8`);
  }
}
