/** The scheme ends with one or more spaces (RFC 9110 section 11.4). */
const scheme = /^bearer +(.*)$/i;

/** The token68 of RFC 6750 section 2.1. */
export const isBearerToken = (text: string): boolean => /^[A-Za-z0-9\-._~+/]+=*$/.test(text);

/** Returns what follows the scheme Bearer in a header Authorization, token or not; undefined for another scheme. */
export const bearerCredentials = (header: string | undefined): string | undefined => scheme.exec(header ?? '')?.[1];
