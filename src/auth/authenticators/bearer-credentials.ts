import type { IncomingMessage } from 'node:http';
import { malformedCredentials } from '../../runtime/errors.ts';

/** The scheme ends with one or more spaces (RFC 9110 section 11.4). */
const scheme = /^bearer +(.*)$/i;

/** Returns whether a text is a token68 (RFC 6750 section 2.1). */
export const isBearerToken = (text: string): boolean => /^[A-Za-z0-9\-._~+/]+=*$/.test(text);

/**
 * Returns the text after the scheme Bearer in an Authorization header, whether or not it is a token; undefined for
 * another scheme.
 */
export const bearerCredentials = (header: string | undefined): string | undefined => scheme.exec(header ?? '')?.[1];

const isAuthorization = (name: string | undefined): boolean =>
  name?.length === 13 && name.toLowerCase() === 'authorization';

/**
 * Returns the bearer credentials of a request. Throws 401 for several Authorization headers, of which Node reads only
 * the first.
 */
export function onlyBearerCredentials({
  headers: { authorization },
  rawHeaders,
}: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string | undefined {
  if (authorization === undefined) return undefined;
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (isAuthorization(rawHeaders[at])) count += 1;
  if (count > 1) throw malformedCredentials('the request has more than one Authorization header');
  return bearerCredentials(authorization);
}

/** Describes why bearer credentials are malformed; undefined if they are well-formed. */
export function malformedToken(credentials: string): string | undefined {
  if (credentials === '') return 'the Authorization header has no token after "Bearer"';
  return isBearerToken(credentials)
    ? undefined
    : 'the token in the Authorization header is malformed; letters, digits and -._~+/ are allowed, with = at the end';
}

/**
 * Describes an Authorization header without bearer credentials. Never quotes the header, because it may contain a
 * secret.
 */
export function unsupportedCredentials(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header.toLowerCase() === 'bearer') return malformedToken('');
  return header.includes(' ')
    ? 'the scheme of the Authorization header is not supported'
    : 'the Authorization header has no scheme';
}
