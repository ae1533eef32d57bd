/**
 * Finding the parts of a JSON text by their place in the bytes, without decoding it: objects are passed on as kube-apiserver
 * wrote them. The text must be valid JSON (it comes from kube-apiserver); a text that ends early throws.
 */

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

/** A response of kube-apiserver has another form. Messages quote none of it, so the log shows them; it shows no SyntaxError's. */
export class MalformedResponseError extends Error {
  override readonly name = 'MalformedResponseError';
}

/** A member of an object: its key and the offsets of the key's quote, of the value and of the value's end. */
export interface Member {
  readonly key: string;
  readonly start: number;
  readonly value: number;
  readonly end: number;
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function skipSpace(text: Buffer, at: number): number {
  let i = at;
  while (isSpace(text[i])) i += 1;
  return i;
}

/** The offset behind the string whose opening quote stands at `at`. */
function skipString(text: Buffer, at: number): number {
  const length = text.length;
  for (let i = at + 1; i < length; i += 1) {
    const byte = text[i];
    if (byte === quote) return i + 1;
    if (byte === backslash) i += 1;
  }
  throw new MalformedResponseError('a JSON text ends inside a string');
}

/** The offset behind the value that starts at `at`. */
export function skipValue(text: Buffer, at: number): number {
  const first = text[at];
  if (first === quote) return skipString(text, at);
  const length = text.length;
  if (first === openBrace || first === openBracket) {
    let depth = 0;
    let i = at;
    while (i < length) {
      const byte = text[i];
      if (byte === quote) {
        i = skipString(text, i);
        continue;
      }
      i += 1;
      if (byte === openBrace || byte === openBracket) depth += 1;
      else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1;
        if (depth === 0) return i;
      }
    }
    throw new MalformedResponseError('a JSON text ends inside an object or an array');
  }
  let i = at;
  while (i < length) {
    const byte = text[i];
    if (byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)) break;
    i += 1;
  }
  if (i === at) throw new MalformedResponseError(`a JSON value is missing at byte ${at}`);
  return i;
}

/** kube-apiserver writes `<`, `>` and `&` as escapes, as everything in Go does. */
const decodedKey = (text: string): string => (text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text);

/** Where the value stands of the key that ends before `keyEnd`. */
function valueBehind(text: Buffer, keyEnd: number): number {
  const separator = skipSpace(text, keyEnd);
  if (text[separator] !== colon)
    throw new MalformedResponseError(`no colon behind the key that ends at byte ${keyEnd}`);
  return skipSpace(text, separator + 1);
}

/** Where the next one stands, or the end, behind a member or an element that ends there. */
function nextBehind(text: Buffer, end: number): number {
  const i = skipSpace(text, end);
  return text[i] === comma ? skipSpace(text, i + 1) : i;
}

/** The members of the object whose brace stands at `at`, in their order. `until`: stop behind the member of that key. */
export function membersOf(text: Buffer, at: number, until?: string): Member[] {
  if (text[at] !== openBrace) throw new MalformedResponseError(`no JSON object at byte ${at}`);
  const found: Member[] = [];
  let i = skipSpace(text, at + 1);
  while (text[i] !== closeBrace) {
    const start = i;
    if (text[start] !== quote) throw new MalformedResponseError(`no JSON key at byte ${start}`);
    const keyEnd = skipString(text, start);
    const value = valueBehind(text, keyEnd);
    const end = skipValue(text, value);
    const key = decodedKey(text.toString('utf8', start + 1, keyEnd - 1));
    found.push({ key, start, value, end });
    if (key === until) return found;
    i = nextBehind(text, end);
  }
  return found;
}

/** Is what stands from `start` to `end` that key? */
function isKey(text: Buffer, start: number, end: number, key: Buffer): boolean {
  for (let i = start; i < end; i += 1) {
    const byte = text[i];
    if (byte === backslash) return decodedKey(text.toString('utf8', start, end)) === key.toString();
    if (byte !== key[i - start]) return false;
  }
  return end - start === key.length;
}

/**
 * The offset of the value that an object has under that key; undefined if it has none. `at`: of the object's brace, or behind one of its
 * members, if it is none of those up to there.
 */
export function valueOf(text: Buffer, at: number, key: Buffer): number | undefined {
  let i = text[at] === openBrace ? skipSpace(text, at + 1) : nextBehind(text, at);
  while (text[i] !== closeBrace) {
    if (text[i] !== quote) throw new MalformedResponseError(`no JSON key at byte ${i}`);
    const keyEnd = skipString(text, i);
    const value = valueBehind(text, keyEnd);
    if (isKey(text, i + 1, keyEnd - 1, key)) return value;
    i = nextBehind(text, skipValue(text, value));
  }
  return undefined;
}

/** Views of the elements of the array whose bracket stands at `at`. */
export function elementsOf(text: Buffer, at: number): Buffer[] {
  if (text[at] !== openBracket) throw new MalformedResponseError(`no JSON array at byte ${at}`);
  const found: Buffer[] = [];
  let i = skipSpace(text, at + 1);
  while (text[i] !== closeBracket) {
    const end = skipValue(text, i);
    found.push(text.subarray(i, end));
    i = nextBehind(text, end);
  }
  return found;
}

const metadataKey = Buffer.from('"metadata":{');

/**
 * An object, or an event that holds one, decoded without metadata.managedFields: these are a third of what there is to decode, and nobody
 * looks into them.
 */
export function decodeWithoutManagedFields(text: Buffer): unknown {
  const metadata = text.indexOf(metadataKey);
  const found = metadata === -1 ? [] : membersOf(text, metadata + metadataKey.length - 1, 'managedFields');
  const last = found.at(-1);
  if (last?.key !== 'managedFields') return JSON.parse(text.toString('utf8'));
  // With the comma before it; one that is the first takes that behind it.
  const from = found.length === 1 ? last.start : (found.at(-2) as Member).end;
  const to = found.length === 1 && text[last.end] === comma ? last.end + 1 : last.end;
  return JSON.parse(text.toString('utf8', 0, from) + text.toString('utf8', to));
}
