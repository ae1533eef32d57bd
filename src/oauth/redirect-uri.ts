const loopback = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?]|$)/;

/**
 * RFC 6749 section 3.1.2.3: character by character; RFC 8252 section 7.3: on loopback addresses at any port. What is registered is a
 * URL, also with the port that was given: our pages read it as one.
 */
export const isRegistered = (registered: readonly string[], given: string): boolean =>
  URL.canParse(given) &&
  registered.some(
    (one) => one === given || (loopback.test(one) && one.replace(loopback, '$1') === given.replace(loopback, '$1')),
  );

/** Whoever listens there has not shown that the URI is theirs (RFC 8252 section 8.6). */
export const provesNobody = (uri: string): boolean => !uri.startsWith('https:');

/** The URI with more parameters, the rest of it unchanged. One without a value is as good as none (RFC 6749 section 3.1). */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  if (given.length === 0) return uri;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(given).toString()}`;
}
