/**
 * Finds the byte offsets of parts of a JSON text without decoding it, because objects are returned as kube-apiserver
 * wrote them. The text must be valid JSON, like all responses of kube-apiserver. The functions throw if the text is
 * truncated.
 */

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

/**
 * Error for an unexpected response of kube-apiserver. Messages do not quote the response and can therefore be logged,
 * unlike the messages of a SyntaxError.
 */
export class MalformedResponseError extends Error {
  override readonly name = 'MalformedResponseError';
}

/** Member of an object: the key, and the offsets of its opening quote, of the value and of the end of the value. */
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

/** Returns the offset after the string whose opening quote is at `at`. */
function skipString(text: Buffer, at: number): number {
  const length = text.length;
  for (let i = at + 1; i < length; i += 1) {
    const byte = text[i];
    if (byte === quote) return i + 1;
    if (byte === backslash) i += 1;
  }
  throw new MalformedResponseError('a JSON text ends inside a string');
}

/** Returns the offset after the value that starts at `at`. */
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

/** Decodes a key. encoding/json in Go escapes `<`, `>` and `&`. */
const decodedKey = (text: string): string => (text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text);

/** Returns the offset of the value of the key that ends before `keyEnd`. */
function valueAfter(text: Buffer, keyEnd: number): number {
  const separator = skipSpace(text, keyEnd);
  if (text[separator] !== colon) throw new MalformedResponseError(`no colon after the key that ends at byte ${keyEnd}`);
  return skipSpace(text, separator + 1);
}

/**
 * Returns the offset of the next member or element, or of the closing bracket. The previous member or element ends at
 * `end`.
 */
function nextAfter(text: Buffer, end: number): number {
  const i = skipSpace(text, end);
  return text[i] === comma ? skipSpace(text, i + 1) : i;
}

/** Returns the members of the object whose brace is at `at`, in order. Stops after the member with the key `until`. */
export function membersOf(text: Buffer, at: number, until?: string): Member[] {
  const found: Member[] = [];
  readMembers(text, at, found, until);
  return found;
}

/** Reads a value. Returns the offset after it, or undefined if the value is to be skipped. */
type ValueReader = (key: string, value: number) => number | undefined;

/**
 * Appends the members of the object whose brace is at `at`. Returns the offset after the object, or after the member
 * with the key `until`.
 */
function readMembers(text: Buffer, at: number, found: Member[], until?: string, read?: ValueReader): number {
  if (text[at] !== openBrace) throw new MalformedResponseError(`no JSON object at byte ${at}`);
  let i = skipSpace(text, at + 1);
  while (text[i] !== closeBrace) {
    const start = i;
    if (text[start] !== quote) throw new MalformedResponseError(`no JSON key at byte ${start}`);
    const keyEnd = skipString(text, start);
    const value = valueAfter(text, keyEnd);
    const key = decodedKey(text.toString('utf8', start + 1, keyEnd - 1));
    const end = read?.(key, value) ?? skipValue(text, value);
    found.push({ key, start, value, end });
    if (key === until) return end;
    i = nextAfter(text, end);
  }
  return i + 1;
}

/** Members of a Kubernetes object, of its metadata and of its status. */
export interface ObjectMembers {
  readonly top: readonly Member[];
  readonly metadata: readonly Member[];
  readonly status: readonly Member[];
}

/** A Kubernetes object in a larger text. The offsets of the members are relative to `bytes`. */
export interface ObjectText {
  readonly bytes: Buffer;
  readonly members: ObjectMembers;
}

/** Finds the first object of the text and its members in one pass. */
function readObject(text: Buffer): ObjectText {
  const [top, metadata, status]: [Member[], Member[], Member[]] = [[], [], []];
  const end = readMembers(text, text.indexOf(openBrace), top, undefined, (key, value) => {
    if (text[value] !== openBrace) return undefined;
    if (key === 'metadata') return readMembers(text, value, metadata);
    return key === 'status' ? readMembers(text, value, status) : undefined;
  });
  return { bytes: text.subarray(0, end), members: { top, metadata, status } };
}

/** Finds the members of an object in one pass. */
export const membersOfObject = (text: Buffer): ObjectMembers => readObject(text).members;

/**
 * Finds the members of a list, and its items with their members, in one pass. A list whose `items` are null has no
 * items.
 */
export function readList(text: Buffer): { readonly top: readonly Member[]; readonly items: readonly ObjectText[] } {
  const top: Member[] = [];
  const items: ObjectText[] = [];
  readMembers(text, text.indexOf(openBrace), top, undefined, (key, value) =>
    key === 'items' && text[value] === openBracket ? readItems(text, value, items) : undefined,
  );
  return { top, items };
}

/** Appends the objects of the array whose bracket is at `at`. Returns the offset after the array. */
function readItems(text: Buffer, at: number, items: ObjectText[]): number {
  let i = skipSpace(text, at + 1);
  while (text[i] !== closeBracket) {
    if (text[i] !== openBrace) throw new MalformedResponseError(`no JSON object at byte ${i}`);
    const item = readObject(text.subarray(i));
    items.push(item);
    i = nextAfter(text, i + item.bytes.length);
  }
  return i + 1;
}

/** Returns true if the text from `start` to `end` is the key. */
function isKey(text: Buffer, start: number, end: number, key: Buffer): boolean {
  for (let i = start; i < end; i += 1) {
    const byte = text[i];
    if (byte === backslash) return decodedKey(text.toString('utf8', start, end)) === key.toString();
    if (byte !== key[i - start]) return false;
  }
  return end - start === key.length;
}

/**
 * Returns the offset of the value of a key of an object; undefined if the key is missing. `at` is the offset of the
 * object's brace, or the end of a member after which the search starts.
 */
export function valueOf(text: Buffer, at: number, key: Buffer): number | undefined {
  let i = text[at] === openBrace ? skipSpace(text, at + 1) : nextAfter(text, at);
  while (text[i] !== closeBrace) {
    if (text[i] !== quote) throw new MalformedResponseError(`no JSON key at byte ${i}`);
    const keyEnd = skipString(text, i);
    const value = valueAfter(text, keyEnd);
    if (isKey(text, i + 1, keyEnd - 1, key)) return value;
    i = nextAfter(text, skipValue(text, value));
  }
  return undefined;
}

/** Returns views of the elements of the array whose bracket is at `at`. */
export function elementsOf(text: Buffer, at: number): Buffer[] {
  if (text[at] !== openBracket) throw new MalformedResponseError(`no JSON array at byte ${at}`);
  const found: Buffer[] = [];
  let i = skipSpace(text, at + 1);
  while (text[i] !== closeBracket) {
    const end = skipValue(text, i);
    found.push(text.subarray(i, end));
    i = nextAfter(text, end);
  }
  return found;
}

/**
 * Decodes an object without metadata.managedFields, and without the member `unreadStatus` of its status. The managed fields
 * are a third of the text, and no code uses them in decoded form.
 */
export function decodeObject(text: Buffer, { metadata, status }: ObjectMembers, unreadStatus?: string): unknown {
  const cuts = [cutOf(metadata, 'managedFields'), cutOf(status, unreadStatus)].filter((cut) => cut !== undefined);
  let kept = '';
  let at = 0;
  for (const [from, to] of cuts.toSorted(([one], [other]) => one - other)) {
    kept += text.toString('utf8', at, from);
    at = to;
  }
  return JSON.parse(kept + text.toString('utf8', at));
}

/** Returns the range of a member with the comma before it, or with the comma after it if the member is the first. */
function cutOf(members: readonly Member[], key: string | undefined): readonly [from: number, to: number] | undefined {
  const index = members.findIndex((member) => member.key === key);
  const member = members[index];
  if (member === undefined) return undefined;
  const before = members[index - 1];
  return before === undefined ? [member.start, members[1]?.start ?? member.end] : [before.end, member.end];
}
