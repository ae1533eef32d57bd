/** The cookies of our pages (RFC 6265). None ever goes to a client, nor upstream. */
import type { Request, Response } from 'express';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { OAuthError } from '../../runtime/errors.ts';
import { html, type Html } from '../../http/response/html.ts';

/** Whose browser it is. */
export const loginCookie = '__Host-platform-login';
/** Binds forms to the browser that was shown them. */
export const formCookie = '__Host-platform-form';

/** What a login at an OpenID provider must come back with. */
export const providerCookie = '__Host-platform-provider';

/** What the prefix `__Host-` demands, with which no other host of the site can give a browser a cookie of its own in place of ours. */
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';

type CookieName = typeof loginCookie | typeof formCookie | typeof providerCookie;

/** Returns undefined also if the name occurs twice: one of them is not ours. The library cookie would return the first. */
export function readCookie(req: Request, name: CookieName): string | undefined {
  const found = (req.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? found[0]?.slice(name.length + 1) : undefined;
}

/** A Set-Cookie header: until the browser ends, or with no value the end of the cookie. */
export const cookie = (name: CookieName, value: string): string =>
  `${name}=${value}; ${attributes}${value === '' ? '; Max-Age=0' : ''}`;

/** What keeps other sites from sending our forms in somebody's name, also that of the login (RFC 9700 section 4.7.1 for the rest). */
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
