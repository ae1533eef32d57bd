/**
 * Names whose values are neither logged nor audited. Trailing characters other than letters are ignored (`password[]`).
 */
const secret =
  /^(authorization|cookie|set-cookie|.*passw(or)?d|.*passphrase|.*pwd|.*(api|access|private)[-_]?key|.*secret|.*token|.*hash|code|.*_code|.*verifier|.*assertion)[^a-z]*$/is;

/** Returns true if the value of a field or parameter with this name must be redacted. */
export const isSecret = (name: string): boolean => secret.test(name);

/** Matches bearer tokens and Basic credentials. White space may be URL-encoded, as in a query. */
const bearer = /(?<![a-z0-9])(bearer|basic)(?:\s|\+|%20)+[a-z0-9\-._~+/]+=*/gi;
const dotted = /[\w.-]+/g;
const jwtStart = /(?<![A-Za-z0-9])eyJ[\w-]/;

/**
 * Returns true for every text with credentials, and for few others. The JSON of such a text also gives true, because
 * JSON does not escape ASCII letters.
 */
export const mayHaveCredentials = (text: string): boolean => /bearer|basic/i.test(text) || text.includes('eyJ');

/**
 * Removes bearer tokens, Basic credentials and JWTs from the text. The time is linear even for a hostile text that
 * consists only of token starts.
 */
export const redactText = (text: string): string =>
  mayHaveCredentials(text) ? text.replace(bearer, '$1 [redacted]').replace(dotted, withoutJWTs) : text;

/** Matches the end of a percent-encoded character, such as `%3D`, even if the percent sign itself is encoded. */
const escapeEnd = /^(?:25)*[0-9a-f]{2}/i;

/**
 * Redacts JWTs. A JWT has three parts separated by dots; the last part may be empty. Other text may precede the first
 * part.
 */
function withoutJWTs(text: string, offset: number, whole: string): string {
  // A token may follow `%3D` if a query contains the URL of another page, such as a logout with id_token_hint.
  const [escaped = ''] = whole[offset - 1] === '%' ? (escapeEnd.exec(text) ?? []) : [];
  const parts = text.slice(escaped.length).split('.');
  const shown: string[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at] ?? '';
    const start = at + 2 < parts.length && parts[at + 1] !== '' ? part.search(jwtStart) : -1;
    shown.push(start === -1 ? part : `${part.slice(0, start)}[redacted]`);
    if (start !== -1) at += 2;
  }
  return escaped + shown.join('.');
}

/** Returns the redacted text as a JSON string. */
export const quoted = (text: string): string => JSON.stringify(redactText(text));

/**
 * Password fields are redacted in objects of every kind, because people try to create users with a password although
 * the kind has no such field.
 */
const password = /passw(?:or)?d$/i;

/**
 * Serializes a value as JSON with credentials and passwords redacted. Throws RangeError if the value is nested too
 * deep.
 */
export const redactedJSON = (value: unknown): string =>
  JSON.stringify(value, (key, item: unknown) =>
    typeof item !== 'string' ? item : password.test(key) ? '[redacted]' : redactText(item),
  );

/**
 * Maximum parameters of a query or form. Further parameters are rejected, because each costs time on the event loop.
 */
export const maxParameters = 1_000;

/** Redacts the values of secret parameters in a path with a query. Omits a query with too many parameters. */
export function shownURL(url: string): string {
  const at = url.indexOf('?');
  if (at === -1) return url;
  // Some clients separate parameters with semicolons.
  const parts = url.slice(at + 1).split(/([&;])/, 2 * maxParameters);
  if (parts.length === 2 * maxParameters) return `${url.slice(0, at)}?[more than ${maxParameters} parameters]`;
  const pairs = parts.map((pair) => {
    const [key = '', value] = pair.split('=', 2);
    return value !== undefined && isSecret(decoded(key)) ? `${key}=redacted` : pair;
  });
  return `${url.slice(0, at)}?${pairs.join('')}`;
}

/**
 * Maximum characters of a URL in the logs for unauthenticated callers. Otherwise anyone could fill the disk of a node.
 */
const maxAnonymousURL = 2_048;

/** Shortens the result of `shownURL` for an unauthenticated caller. */
export const anonymousURL = (url: string): string =>
  url.length <= maxAnonymousURL ? url : `${redactText(url).slice(0, maxAnonymousURL)}…`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
