import { badRequest } from '../../runtime/errors.ts';
import { elementsOf, skipValue, valueOf } from '../../cluster/cache/json-scan.ts';
import { memoryOf, type StoredObject } from '../../cluster/cache/stored-object.ts';

/** The parts between commas that no backslash escapes. */
export const splitAtCommas = (text: string): string[] => text.split(/(?<=(?:^|[^\\])(?:\\\\)*),/);

/** No object of Kubernetes is that deep. */
const mostSegments = 64;

export type Scalar = string | number | boolean;

/** Of other path languages: in this one they stand for nothing, and no path with one of them finds anything. */
const foreign = /[[\]",]/;
const name = String.raw`(?:[^.\\[\]",]|\\[\s\S])+`;
/** What a path looks like, for those who describe one. */
export const pathPattern = String.raw`${name}(?:\.${name}){0,${mostSegments - 1}}`;
/** The same in a list of them, whatever its depth: Go's regexp repeats a repetition no more than a thousand times. */
export const listedPathPattern = String.raw`${name}(?:\.${name})*`;
const syntax = String.raw`segments are separated by dots, a dot within one is escaped, as in .metadata.labels.kubernetes\.io/os, and an element of an array is its index from 0, as in .status.conditions.0.type (fields also goes through all: .status.conditions.type)`;

/** `.spec.unschedulable`, `metadata.labels.kubernetes\.io/arch`, `status.addresses.0.type`. Throws 400 for what is no path. */
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
      throw badRequest(`${JSON.stringify(path)} is no path, for its ${JSON.stringify(char)}: ${syntax}`);
    else segment += char;
  }
  segments.push(segment);
  if (segments.length > mostSegments)
    throw badRequest(`a path has at most ${mostSegments} segments, not ${segments.length}`);
  if (segments.includes('')) throw badRequest(`${JSON.stringify(path)} is no path: ${syntax}`);
  return segments;
}

interface Segment {
  readonly text: string;
  /** The same as UTF-8. */
  readonly key: Buffer;
}

/** Finds the text, number or boolean at a path; undefined if there is nothing, null, an object or an array. */
export function scalarAt(path: readonly string[]): (object: StoredObject<unknown>) => Scalar | undefined {
  const segments = path.map((text): Segment => ({ text, key: Buffer.from(text) }));
  const isFirst = ['kind', 'apiVersion', 'metadata'].includes(path[0] ?? '');
  const find = ({ bytes, metadataEnd }: StoredObject<unknown>): Scalar | undefined =>
    scalarIn(bytes, segments, isFirst ? 0 : metadataEnd + 1);
  const memory = memoryOf(`scalar at ${JSON.stringify(path)}`);
  return (object) => object.remembered(memory, find);
}

/** `start`: as `valueOf` has it. */
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
  // Kubernetes' whole numbers have 64 bits: one that is no number here stays as it is written.
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(written)
    ? written
    : (value ?? undefined);
}
