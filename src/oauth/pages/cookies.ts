/** Cookies of the pages (RFC 6265). These cookies are never forwarded to a client or upstream. */
import type { Request, Response } from 'express';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { OAuthError } from '../../runtime/errors.ts';
import { html, type Html } from '../../http/response/html.ts';

/** Cookie with the login of the browser. */
export const loginCookie = '__Host-platform-login';
/** Cookie that binds forms to the browser for which they were rendered. */
export const formCookie = '__Host-platform-form';

/** Cookie with the state of a login at an OpenID provider. */
export const providerCookie = '__Host-platform-provider';

/**
 * Attributes that the prefix `__Host-` requires. The prefix prevents other hosts of the site from replacing the
 * cookies.
 */
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';

type CookieName = typeof loginCookie | typeof formCookie | typeof providerCookie;

/**
 * Returns the value of a cookie; undefined if the cookie is missing or occurs twice, because one of the two cookies
 * would be forged. The library `cookie` would return the first cookie.
 */
export function readCookie(req: Request, name: CookieName): string | undefined {
  const found = (req.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? found[0]?.slice(name.length + 1) : undefined;
}

/** Returns a Set-Cookie header for a session cookie. An empty value deletes the cookie. */
export const cookie = (name: CookieName, value: string): string =>
  `${name}=${value}; ${attributes}${value === '' ? '; Max-Age=0' : ''}`;

/** Form field that prevents cross-site request forgery (RFC 9700 section 4.7.1). The login form has this field too. */
export const formTokenField = 'form_token';

const tokenOf = (secret: string): Buffer => createHash('sha256').update(`form:${secret}`).digest();

/** Returns the hidden field of a form, and sets the cookie if the browser has none. */
export function formToken(req: Request, res: Response): Html {
  let secret = readCookie(req, formCookie);
  if (secret === undefined) {
    secret = randomBytes(16).toString('base64url');
    res.appendHeader('Set-Cookie', cookie(formCookie, secret));
  }
  return html`<input type="hidden" name="${formTokenField}" value="${tokenOf(secret).toString('base64url')}" />`;
}

/** Throws unless a page of this server showed the form to this browser. */
export function assertFormToken(req: Request, form: ReadonlyMap<string, string>): void {
  const site = req.headers['sec-fetch-site'];
  const secret = readCookie(req, formCookie);
  const actual = Buffer.from(form.get(formTokenField) ?? '', 'base64url');
  const expected = tokenOf(secret ?? '');
  const matches = actual.length === expected.length && timingSafeEqual(actual, expected);
  if (secret === undefined || !matches || (site !== undefined && site !== 'same-origin'))
    throw new OAuthError(
      'invalid_request',
      'this form has expired or was not opened in this browser; go back and start again',
      { status: 403 },
    );
}
