/** Maximum nesting of arrays and objects. A User has 9 levels, including managedFields. */
export const maxDepth = 64;
/**
 * Maximum number of values, counted by commas. A schema takes 1.4 µs to refuse a value. A User has at most about 300.
 */
const maxValues = 4_096;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns the text; undefined if the bytes are not UTF-8. */
export function decodeUTF8(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Parses JSON sent by a caller. Throws a SyntaxError whose message starts with a verb for the subject "the body". The
 * message never quotes the text, which may contain a password.
 */
export function parseJSON(bytes: Buffer): unknown {
  checkShape(bytes);
  let areFinite = true;
  const checked = (_: string, value: unknown): unknown => {
    areFinite &&= typeof value !== 'number' || Number.isFinite(value);
    return value;
  };
  let value: unknown;
  const text = decodeUTF8(bytes) ?? '';
  try {
    value = JSON.parse(text, huge.test(text) ? checked : undefined);
  } catch {
    throw new SyntaxError('is not JSON in UTF-8');
  }
  if (!areFinite) throw new SyntaxError('contains a number larger than 1.8e308');
  return value;
}

/**
 * Matches every text with a number that JSON.parse returns as Infinity, and some other texts. JSON.stringify would
 * write Infinity as null.
 */
const huge = /[eE]\+?\d{3}|\d{200}/;

/**
 * Limits nesting and number of values before parsing. JSON.parse takes 40 ms for 1 MiB of nested arrays, JSON.stringify
 * fails on the result, and the schema checks each value. Throws SyntaxError.
 */
function checkShape(bytes: Buffer): void {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1)
    switch (String.fromCharCode(bytes[at] as number)) {
      case '"':
        inString = !inString;
        break;
      case '\\':
        if (inString) at += 1;
        break;
      case ',':
        if (!inString) values += 1;
        if (values > maxValues) throw new SyntaxError(`has more than ${maxValues} values`);
        break;
      case '[':
      case '{':
        if (!inString) depth += 1;
        if (depth > maxDepth) throw new SyntaxError(`is nested deeper than ${maxDepth} levels`);
        break;
      case ']':
      case '}':
        if (!inString) depth -= 1;
        break;
    }
}
