/** The cookies of our pages (RFC 6265). None ever goes to a client, nor upstream. */
import type { Request } from 'express';

/** Whose browser it is. */
export const loginCookie = '__Host-platform-login';
/** Binds forms to the browser that was shown them. */
export const formCookie = '__Host-platform-form';

/** What a login at an OpenID provider must come back with. */
export const providerCookie = '__Host-platform-provider';

/** What the prefix `__Host-` demands, with which no other host of the site can give a browser a cookie of its own in place of ours. */
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';

export type CookieName = typeof loginCookie | typeof formCookie | typeof providerCookie;

/** Undefined also where it comes twice: one of them is not ours. */
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
