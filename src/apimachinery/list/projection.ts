/**
 * Implements the parameter `fields` of /kapis: cuts the requested paths out of the objects' bytes without decoding the
 * bytes.
 */
import { badRequest } from '../../runtime/errors.ts';
import { elementsOf, membersOf } from '../../cluster/cache/json-scan.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import { parseFieldPath, splitAtCommas } from './field-path.ts';
import type { View } from './views.ts';

/** The part of a value to keep: all of it, or the named members and elements. */
export type Projection = true | Members;
interface Members extends Map<string, Projection> {}

/** Paths that are always kept, because they identify the object. */
const always = ['apiVersion', 'kind', 'metadata.name', 'metadata.namespace'];
export const maxPaths = 64;

const openBrace = 0x7b;
const openBracket = 0x5b;
const [open, close, openList, closeList, comma] = ['{', '}', '[', ']', ','].map((text) => Buffer.from(text)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];

/** Parses the paths of a comma-separated list. Throws 400 for invalid paths, and for too many paths. */
export function parsePaths(text: string): readonly (readonly string[])[] {
  const paths = splitAtCommas(text);
  if (paths.length > maxPaths) throw badRequest(`expected at most ${maxPaths} paths, got ${paths.length}`);
  return paths.map(parseFieldPath);
}

/**
 * Parses a comma-separated list of paths such as `.spec.taints,status.addresses.0,metadata.labels.kubernetes\.io/arch`.
 * A path through an array without an index applies to all its elements. Throws 400 for invalid paths.
 */
export function parseFields(text: string): Projection {
  const root: Members = new Map();
  for (const path of [...always.map(parseFieldPath), ...parsePaths(text)]) add(root, path);
  return root;
}

function add(root: Members, path: readonly string[]): void {
  let members = root;
  for (const segment of path.slice(0, -1)) {
    let next = members.get(segment);
    if (next === true) return;
    if (next === undefined) members.set(segment, (next = new Map<string, Projection>()));
    members = next;
  }
  members.set(path.at(-1) ?? '', true);
}

/** Returns the kept part of a JSON value; undefined if a path leads through a value without members. */
export function project(text: Buffer, projection: Projection): Buffer | undefined {
  if (projection === true) return text;
  if (text[0] === openBrace) return enclosed(open, close, membersIn(text, projection));
  return text[0] === openBracket ? enclosed(openList, closeList, elementsIn(text, projection)) : undefined;
}

function* membersIn(text: Buffer, projection: Members): Generator<Buffer> {
  for (const { key, start, value, end } of membersOf(text, 0)) {
    const inner = projection.get(key);
    const kept = inner === undefined ? undefined : project(text.subarray(value, end), inner);
    if (kept !== undefined) yield Buffer.concat([text.subarray(start, value), kept]);
  }
}

function* elementsIn(text: Buffer, projection: Members): Generator<Buffer> {
  const forEach = [...projection.keys()].every((key) => /^\d+$/.test(key)) ? undefined : projection;
  for (const [index, element] of elementsOf(text, 0).entries()) {
    const inner = projection.get(String(index)) ?? forEach;
    const kept = inner === undefined ? undefined : project(element, inner);
    if (kept !== undefined) yield kept;
  }
}

function enclosed(before: Buffer, after: Buffer, parts: Iterable<Buffer>): Buffer {
  const pieces = [before];
  for (const part of parts) {
    if (pieces.length > 1) pieces.push(comma);
    pieces.push(part);
  }
  return Buffer.concat([...pieces, after]);
}

/** Returns a key that is equal for the same paths in any order. */
const keyOf = (projection: Projection): string =>
  projection === true
    ? 'true'
    : `{${[...projection]
        .map(([name, inner]) => `${JSON.stringify(name)}:${keyOf(inner)}`)
        .toSorted((a, b) => (a < b ? -1 : 1))
        .join()}}`;

/** Returns the view of one request that shows only the projected part of objects. */
export function projected<F>(view: View<F>, projection: Projection): View<F> {
  const object = (whole: StoredObject<F>): Buffer[] => {
    const pieces = view.object(whole);
    const kept = project(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces), projection);
    return kept === undefined ? [] : [kept];
  };
  return {
    own: true,
    origin: { view, key: keyOf(projection) },
    object,
    items: { bytesOf: (objects) => objects.flatMap((one) => [...object(one), comma]), sizeOf: undefined },
    frame: view.frame,
    bookmark: view.bookmark,
  };
}
