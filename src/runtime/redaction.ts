/** Names whose values are not logged or audited, also with characters that are not letters at their end (`password[]`). */
const secret =
  /^(authorization|cookie|set-cookie|.*passw(or)?d|.*passphrase|.*pwd|.*(api|access|private)[-_]?key|.*secret|.*token|.*hash|code|.*_code|.*verifier|.*assertion)[^a-z]*$/is;

/** Is the value of a field or parameter of this name never written? */
export const isSecret = (name: string): boolean => secret.test(name);

/** White space, also as a query has it. */
const bearer = /(?<![a-z0-9])(bearer|basic)(?:\s|\+|%20)+[a-z0-9\-._~+/]+=*/gi;
const dotted = /[\w.-]+/g;
const jwtBegin = /(?<![A-Za-z0-9])eyJ[\w-]/;

/**
 * The text without bearer tokens and passwords of Basic. Few texts have anything of the kind, and to look for a word is cheap. Anybody may
 * send a text that is made of nothing but beginnings of tokens: each character is looked at a few times at most.
 */
export function redactText(text: string): string {
  let shown = text;
  if (/bearer|basic/i.test(shown)) shown = shown.replace(bearer, '$1 [redacted]');
  if (shown.includes('eyJ')) shown = shown.replace(dotted, withoutJWTs);
  return shown;
}

/** Of three parts with dots between, the last of which may be empty; before the first something else may stand. */
function withoutJWTs(text: string): string {
  const parts = text.split('.');
  const shown: string[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at] ?? '';
    const begin = at + 2 < parts.length && parts[at + 1] !== '' ? part.search(jwtBegin) : -1;
    shown.push(begin === -1 ? part : `${part.slice(0, begin)}[redacted]`);
    if (begin !== -1) at += 2;
  }
  return shown.join('.');
}

/** The same, as JSON has it. */
export const quoted = (text: string): string => JSON.stringify(redactText(text));

/** Of any object, also where it has no business: people try to make users with one. */
const password = /passw(?:or)?d$/i;

/** A value as JSON, with none of them in any of its texts, and no password. Throws RangeError for what is nested too deep. */
export const redactedJSON = (value: unknown): string =>
  JSON.stringify(value, (key, one: unknown) =>
    typeof one !== 'string' ? one : password.test(key) ? '[redacted]' : redactText(one),
  );

/** Parameters of a query or a form: more of them are refused, as each costs the event loop time. */
export const maxParameters = 1_000;

/** The path and query without the values of parameters that are secrets, and without a query of too many parameters. */
export function shownURL(url: string): string {
  const at = url.indexOf('?');
  if (at === -1) return url;
  // Some take a semicolon for an ampersand.
  const parts = url.slice(at + 1).split(/([&;])/, 2 * maxParameters);
  if (parts.length === 2 * maxParameters) return `${url.slice(0, at)}?[more than ${maxParameters} parameters]`;
  const pairs = parts.map((pair) => {
    const [key = '', value] = pair.split('=', 2);
    return value !== undefined && isSecret(decoded(key)) ? `${key}=redacted` : pair;
  });
  return `${url.slice(0, at)}?${pairs.join('')}`;
}

/** Characters of a URL that log and audit show of a caller who is not authenticated: anyone could fill a node's disk with them. */
const maxAnonymousURL = 2_048;

/** Shortens what `shownURL` returned for such a caller. */
export const anonymousURL = (url: string): string =>
  url.length <= maxAnonymousURL ? url : `${redactText(url).slice(0, maxAnonymousURL)}…`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
