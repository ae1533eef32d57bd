/** `fields` on /kapis: only the paths that were asked for, cut out of the objects' bytes without decoding them. */
import { badRequest } from '../../runtime/errors.ts';
import { elementsOf, membersOf } from '../../cluster/cache/json-scan.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import { parseFieldPath, splitAtCommas } from './field-path.ts';
import type { View } from './views.ts';

/** What is kept of a value: all of it, or the members and elements named here. */
export type Projection = true | Members;
interface Members extends Map<string, Projection> {}

/** An object without these cannot be told from others. */
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

/**
 * Reads a comma list of paths such as `.spec.taints,status.addresses.0,metadata.labels.kubernetes\.io/arch`; a path through an
 * array without an index is one through each of its elements. Throws 400 for what is none.
 */
export function parseFields(text: string): Projection {
  const paths = splitAtCommas(text);
  if (paths.length > maxPaths) throw badRequest(`must be at most ${maxPaths} paths, not ${paths.length}`);
  const root: Members = new Map();
  for (const path of [...always, ...paths]) add(root, parseFieldPath(path));
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

/** The part of a JSON value that is kept; undefined where a path leads through what has no members. */
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

/** The same for the same paths, in whatever order they were asked for. */
const keyOf = (projection: Projection): string =>
  projection === true
    ? 'true'
    : `{${[...projection]
        .map(([name, inner]) => `${JSON.stringify(name)}:${keyOf(inner)}`)
        .toSorted((a, b) => (a < b ? -1 : 1))
        .join()}}`;

/** The same view, of cut objects, for one request. */
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
