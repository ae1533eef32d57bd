/** The two cookies of our pages (RFC 6265). Neither ever goes to a client, nor upstream. */
import type { Request } from 'express';

/** Whose browser it is. */
export const loginCookie = '__Secure-platform-login';
/** Binds forms to the browser that was shown them; no other host can set one of this prefix. */
export const formCookie = '__Host-platform-form';

const attributes = {
  [loginCookie]: 'Path=/oauth; Secure; HttpOnly; SameSite=Lax',
  [formCookie]: 'Path=/; Secure; HttpOnly; SameSite=Lax',
};

export type CookieName = keyof typeof attributes;

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
  `${name}=${value}; ${attributes[name]}${value === '' ? '; Max-Age=0' : ''}`;
