/** What keeps other sites from sending our forms in somebody's name, also that of the login (RFC 9700 section 4.7.1 for the rest). */
import type { Request, Response } from 'express';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { OAuthError } from '../../runtime/errors.ts';
import { cookie, formCookie, readCookie } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';

export const formTokenField = 'form_token';

const tokenOf = (secret: string): Buffer => createHash('sha256').update(`form:${secret}`).digest();

/** The hidden field of a form; gives the browser its cookie if it has none. */
export function formToken(req: Request, res: Response): Html {
  let secret = readCookie(req, formCookie);
  if (secret === undefined) {
    secret = randomBytes(16).toString('base64url');
    res.appendHeader('Set-Cookie', cookie(formCookie, secret));
  }
  return html`<input type="hidden" name="${formTokenField}" value="${tokenOf(secret).toString('base64url')}" />`;
}

/** Throws unless the form is one that this browser was shown by us. */
export function demandFormToken(req: Request, form: ReadonlyMap<string, string>): void {
  const site = req.headers['sec-fetch-site'];
  const secret = readCookie(req, formCookie);
  const given = Buffer.from(form.get(formTokenField) ?? '', 'base64url');
  const wanted = tokenOf(secret ?? '');
  const fits = given.length === wanted.length && timingSafeEqual(given, wanted);
  if (secret === undefined || !fits || (site !== undefined && site !== 'same-origin'))
    throw new OAuthError(
      'invalid_request',
      'this form is out of date, or was not opened from here: go back and begin again',
      {
        status: 403,
      },
    );
}
