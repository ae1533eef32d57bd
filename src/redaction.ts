/** What is never written down, neither in the log nor for auditors. */
const secret =
  /^(authorization|cookie|set-cookie|.*password|.*secret|.*token|.*hash|code|.*_code|.*verifier|.*assertion)$/i;

/** Is the value of a field or parameter of this name never written? */
export const isSecret = (name: string): boolean => secret.test(name);

const bearer = /(?<![a-z0-9])(bearer|basic)\s+[a-z0-9\-._~+/]+=*/gi;
const jwt = /(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;

/** The text without bearer tokens and passwords of Basic. Few texts have anything of the kind, and to look for a word is cheap. */
export function redactText(text: string): string {
  let shown = text;
  if (/bearer|basic/i.test(shown)) shown = shown.replace(bearer, '$1 [redacted]');
  if (shown.includes('eyJ')) shown = shown.replace(jwt, '[redacted]');
  return shown;
}

/** The same, as JSON has it. */
export const quoted = (text: string): string => JSON.stringify(redactText(text));

/** A value as JSON, with none of them in any of its texts. Throws RangeError for what is nested too deep. */
export const redactedJSON = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) => (typeof one === 'string' ? redactText(one) : one));

/** The path and query without the values of parameters that are secrets. */
export function shownURL(url: string): string {
  const at = url.indexOf('?');
  if (at === -1) return url;
  const pairs = url
    .slice(at + 1)
    .split('&')
    .map((pair) => {
      const [key = ''] = pair.split('=', 1);
      return isSecret(decoded(key)) ? `${key}=redacted` : pair;
    });
  return `${url.slice(0, at)}?${pairs.join('&')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
