import { badRequest } from '../../runtime/errors.ts';
import { elementsOf, skipValue, valueOf } from '../../cluster/cache/json-scan.ts';
import { memoKeyOf, type StoredObject } from '../../cluster/cache/stored-object.ts';

/** Splits the text at commas that are not escaped by a backslash. */
export const splitAtCommas = (text: string): string[] => text.split(/(?<=(?:^|[^\\])(?:\\\\)*),/);

/** Maximum depth of a path. No Kubernetes object is that deep. */
const maxSegments = 64;

export type Scalar = string | number | boolean;

/** Syntax of other path languages. Paths with this syntax are rejected, because they would never match. */
const foreign = /[[\]",]/;
const name = String.raw`(?:[^.\\[\]",]|\\[\s\S])+`;
/** Regular expression of a path, for API descriptions. */
export const pathPattern = String.raw`${name}(?:\.${name}){0,${maxSegments - 1}}`;
/**
 * Regular expression of a path in a list of paths. The depth is not limited, because Go's regexp allows at most 1,000
 * nested repetitions.
 */
export const listedPathPattern = String.raw`${name}(?:\.${name})*`;
const syntax = String.raw`segments are separated by dots; escape a dot within a segment, as in .metadata.labels.kubernetes\.io/os; select an array element by its index from 0, as in .status.conditions.0.type (fields also accepts .status.conditions.type for all elements)`;

/**
 * Parses `.spec.unschedulable`, `metadata.labels.kubernetes\.io/arch` or `status.addresses.0.type`. Throws 400 for an
 * invalid path.
 */
export function parseFieldPath(path: string): readonly string[] {
  const segments: string[] = [];
  let segment = '';
  const text = path.startsWith('.') ? path.slice(1) : path;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charAt(i);
    if (char === '.') {
      segments.push(segment);
      segment = '';
    } else if (char === '\\' && i + 1 < text.length) segment += text.charAt((i += 1));
    else if (char === '\\' || foreign.test(char))
      throw badRequest(`${JSON.stringify(path)} is not a valid path because of ${JSON.stringify(char)}: ${syntax}`);
    else segment += char;
  }
  segments.push(segment);
  if (segments.length > maxSegments)
    throw badRequest(`expected a path of at most ${maxSegments} segments, got ${segments.length}`);
  if (segments.includes('')) throw badRequest(`${JSON.stringify(path)} is not a valid path: ${syntax}`);
  return segments;
}

interface Segment {
  readonly text: string;
  /** The text of the segment in UTF-8. */
  readonly key: Buffer;
}

/**
 * Returns a function that finds the string, number or boolean at a path. That function returns undefined for any other
 * value.
 */
export function scalarAt(path: readonly string[]): (object: StoredObject<unknown>) => Scalar | undefined {
  const segments = path.map((text): Segment => ({ text, key: Buffer.from(text) }));
  const isFirst = ['kind', 'apiVersion', 'metadata'].includes(path[0] ?? '');
  const find = ({ bytes, metadataEnd }: StoredObject<unknown>): Scalar | undefined =>
    scalarIn(bytes, segments, isFirst ? 0 : metadataEnd + 1);
  const memoKey = memoKeyOf(`scalar at ${JSON.stringify(path)}`);
  return (object) => object.memoize(memoKey, find);
}

/** Finds a scalar in an object's bytes. `start` is an offset as for `valueOf`. */
function scalarIn(bytes: Buffer, path: readonly Segment[], start: number): Scalar | undefined {
  let text = bytes;
  let at: number | undefined = start;
  for (const [depth, { text: segment, key }] of path.entries()) {
    const first = text[at];
    if (depth === 0 || first === 0x7b) {
      at = valueOf(text, at, key);
      if (at === undefined) return undefined;
    } else if (first === 0x5b) {
      const element: Buffer | undefined = /^\d{1,9}$/.test(segment) ? elementsOf(text, at)[Number(segment)] : undefined;
      if (element === undefined) return undefined;
      text = element;
      at = 0;
    } else return undefined;
  }
  return decoded(text, at);
}

function decoded(text: Buffer, at: number): Scalar | undefined {
  const first = text[at];
  if (first === 0x7b || first === 0x5b || first === undefined) return undefined;
  const written = text.toString('utf8', at, skipValue(text, at));
  const value = JSON.parse(written) as Scalar | null;
  // Kubernetes integers have 64 bits. An integer that JavaScript cannot represent exactly stays text.
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(written)
    ? written
    : (value ?? undefined);
}
