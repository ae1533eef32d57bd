import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { MalformedResponseError, membersOf, skipValue, valueOf, type Member } from './json-scan.ts';
import type { KubeObject, OwnerReference } from '../client/kube-object.ts';
import type { ManagedFields } from './managed-fields.ts';
import type { Packed } from './packed.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** A piece of memory outside the V8 heap, in which objects lie side by side. */
export interface Slab {
  readonly memory: Buffer;
}

const isPacked = (place: Slab | Packed): place is Packed => !('memory' in place);

/** Where in its bytes the parts of an object are. */
interface Layout {
  /** Of metadata's brace. */
  readonly metadata: number;
  /** Behind `"selfLink":"…",`. */
  readonly selfLinkEnd: number;
  /** Of metadata's closing brace. */
  readonly metadataEnd: number;
  /** Of the digits of metadata.resourceVersion. */
  readonly versionStart: number;
  readonly versionEnd: number;
}

/** What lists filter and sort by. */
interface Indexed<F> {
  readonly name: string;
  /** '' at cluster scope. */
  readonly namespace: string;
  readonly uid: string;
  /** The etcd revision: a whole number below 2^53. */
  readonly resourceVersion: number;
  /** Milliseconds since the epoch, 0 if unknown. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /** What the resource itself wants to have at hand. */
  readonly fields: F;
}

/** So many values that were looked for in an object's bytes are kept with it. */
const maxRemembered = 16;

/**
 * Numbers of what is looked for in objects. Requests choose that text: a million objects must not each keep others of them.
 */
const memories = new BoundedCache<number>({
  name: 'remembered_paths',
  maxEntries: 1_000,
  maxBytes: 1024 * 1024,
  ttl: 3_600_000,
});
let memoryCount = 0;

/** Names a value that objects remember. A text that was forgotten gets another number, and is looked for again. */
export function memoryOf(text: string): number {
  let memory = memories.get(text);
  if (memory === undefined) memories.set(text, (memory = memoryCount += 1));
  return memory;
}

/**
 * One state of one object: its bytes outside the V8 heap and beside them what lists filter and sort by. What it says is never
 * altered; where its bytes lie may change.
 *
 * `bytes` is the object as kube-apiserver wrote it, but with kind, apiVersion and metadata first, with metadata.selfLink, without
 * managedFields, and with the comma that follows it in a list:
 *
 *     {"kind":"Node","apiVersion":"v1","metadata":{"selfLink":"/api/v1/nodes/n1","name":"n1",…},"spec":…},
 *                                      ↑ metadata                  ends here ↑           ↑ metadataEnd
 */
export class StoredObject<F> implements Indexed<F>, Layout {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: number;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  readonly fields: F;
  readonly metadata: number;
  readonly selfLinkEnd: number;
  readonly metadataEnd: number;
  readonly versionStart: number;
  readonly versionEnd: number;
  /** Of the bytes. */
  readonly length: number;
  readonly #managedFields: Packed | undefined;
  #place: Slab | Packed;
  #start: number;
  #remembered: Map<number, unknown> | undefined;

  constructor(indexed: Indexed<F>, layout: Layout, bytes: Buffer, managedFields: Packed | undefined) {
    this.name = indexed.name;
    this.namespace = indexed.namespace;
    this.uid = indexed.uid;
    this.resourceVersion = indexed.resourceVersion;
    this.createdAt = indexed.createdAt;
    this.labels = indexed.labels;
    this.ownerReferences = indexed.ownerReferences;
    this.fields = indexed.fields;
    this.metadata = layout.metadata;
    this.selfLinkEnd = layout.selfLinkEnd;
    this.metadataEnd = layout.metadataEnd;
    this.versionStart = layout.versionStart;
    this.versionEnd = layout.versionEnd;
    this.length = bytes.length;
    this.#managedFields = managedFields;
    this.#place = { memory: bytes };
    this.#start = 0;
  }

  /** Not a copy, unless the bytes are packed. */
  get bytes(): Buffer {
    const place = this.#place;
    return isPacked(place) ? place.bytes : place.memory.subarray(this.#start, this.#start + this.length);
  }

  /** `,"managedFields":[…]`, which belongs before `metadataEnd`; undefined if there are none. */
  get managedFields(): Buffer | undefined {
    return this.#managedFields?.bytes;
  }

  get annotations(): Readonly<Record<string, string>> {
    const { bytes } = this;
    const at = valueOf(bytes, this.metadata, annotationsKey);
    if (at === undefined) return none;
    return JSON.parse(bytes.toString('utf8', at, skipValue(bytes, at))) as Record<string, string>;
  }

  /** The slab in which the bytes lie; undefined when they are packed. */
  get slab(): Slab | undefined {
    return isPacked(this.#place) ? undefined : this.#place;
  }

  /** Bytes held beside those in a slab. */
  get packedSize(): number {
    return (isPacked(this.#place) ? this.#place.size : 0) + (this.#managedFields?.size ?? 0);
  }

  /** Do its bytes lie directly behind those of the other? */
  follows(other: StoredObject<unknown>): boolean {
    return this.#place === other.#place && this.#start === other.#start + other.length;
  }

  /** Copies the bytes to another place, where they stay as long as nobody moves them again. */
  moveTo(slab: Slab, start: number): void {
    this.bytes.copy(slab.memory, start);
    this.#place = slab;
    this.#start = start;
  }

  /** Keeps the bytes, packed, in the place of themselves. */
  keepAs(packed: Packed): void {
    this.#place = packed;
  }

  /** What was found out about the object under that key, or is now: it cannot change. */
  remembered<T>(key: number, find: (object: StoredObject<unknown>) => T): T {
    const known = this.#remembered?.get(key);
    if (known !== undefined || this.#remembered?.has(key) === true) return known as T;
    const found = find(this);
    if (this.#remembered === undefined || this.#remembered.size === maxRemembered) this.#remembered = new Map();
    this.#remembered.set(key, found);
    return found;
  }

  /** The same state under another resourceVersion: how a watch shows an object that it has to take away. */
  withResourceVersion(resourceVersion: number): StoredObject<F> {
    const { bytes, versionStart, versionEnd } = this;
    const digits = Buffer.from(String(resourceVersion));
    const more = digits.length - (versionEnd - versionStart);
    const pieces = [bytes.subarray(0, versionStart), digits, bytes.subarray(versionEnd)];
    return new StoredObject<F>(
      { ...(this as Indexed<F>), resourceVersion },
      { ...(this as Layout), metadataEnd: this.metadataEnd + more, versionEnd: versionEnd + more },
      copied(pieces, bytes.length + more),
      this.#managedFields,
    );
  }
}

/** The bytes of these objects one behind the other, in as few pieces as they lie in. */
export function gather(objects: readonly StoredObject<unknown>[]): Buffer[] {
  const pieces: Buffer[] = [];
  let first = 0;
  for (let i = 1; i <= objects.length; i += 1) {
    const last = objects[i - 1] as StoredObject<unknown>;
    if (objects[i]?.follows(last) === true) continue;
    const { bytes } = objects[first] as StoredObject<unknown>;
    pieces.push(first === i - 1 ? bytes : across(bytes, last.bytes));
    first = i;
  }
  return pieces;
}

/** From the start of one view to the end of another in the same memory. */
const across = (from: Buffer, to: Buffer): Buffer =>
  Buffer.from(from.buffer, from.byteOffset, to.byteOffset + to.length - from.byteOffset);

export interface StoredObjectOptions<F> {
  /** metadata.selfLink, the object's path in the API it was read from. */
  selfLink(object: KubeObject): string;
  fields(object: KubeObject): F;
  /** Where those of others like it are. */
  readonly managedFields: ManagedFields;
}

const annotationsKey = Buffer.from('annotations');
const comma = 0x2c;
const none: Readonly<Record<string, never>> = {};

/** Throws MalformedResponseError if the bytes are no object with metadata and a numeric resourceVersion. */
export function storeObject<F>(object: KubeObject, source: Buffer, options: StoredObjectOptions<F>): StoredObject<F> {
  const top = membersOf(source, source.indexOf('{'));
  const at = top.find(({ key }) => key === 'metadata');
  if (at === undefined) throw new MalformedResponseError('an object has no metadata');
  const metadata = membersOf(source, at.value);
  const text = ({ start, end }: Member): Buffer => source.subarray(start, end);

  const head = Buffer.from(
    `{"kind":${JSON.stringify(object.kind)},"apiVersion":${JSON.stringify(object.apiVersion)},"metadata":{`,
  );
  const selfLink = Buffer.from(`"selfLink":${JSON.stringify(options.selfLink(object))},`);
  const kept = metadata.filter(({ key }) => key !== 'managedFields' && key !== 'selfLink');
  const rest = top.filter(({ key }) => key !== 'kind' && key !== 'apiVersion' && key !== 'metadata');

  const pieces: Buffer[] = [head, selfLink];
  let length = head.length + selfLink.length;
  const push = (piece: Buffer): void => {
    pieces.push(piece);
    length += piece.length;
  };
  let version: { versionStart: number; versionEnd: number } | undefined;
  for (const [index, member] of kept.entries()) {
    if (index > 0) push(commaByte);
    const piece = text(member);
    if (member.key === 'resourceVersion') {
      const versionEnd = length + piece.length - 1;
      version = { versionStart: versionEnd - (member.end - member.value - 2), versionEnd };
    }
    push(piece);
  }
  const metadataEnd = length;
  push(closeByte);
  for (const member of rest) {
    push(commaByte);
    push(text(member));
  }
  push(endBytes);

  const resourceVersion = Number(object.metadata.resourceVersion);
  if (version === undefined || !Number.isSafeInteger(resourceVersion))
    throw new MalformedResponseError('an object has no numeric resourceVersion');
  const managed = metadata.find(({ key }) => key === 'managedFields');
  const {
    name,
    namespace = '',
    uid = '',
    labels = none,
    ownerReferences = nobody,
    creationTimestamp,
  } = object.metadata;
  const createdAt = creationTimestamp === undefined ? 0 : parseMilliseconds(creationTimestamp) || 0;
  return new StoredObject<F>(
    { name, namespace, uid, resourceVersion, createdAt, labels, ownerReferences, fields: options.fields(object) },
    { metadata: head.length - 1, selfLinkEnd: head.length + selfLink.length, metadataEnd, ...version },
    copied(pieces, length),
    managed === undefined ? undefined : options.managedFields.pack(Buffer.concat([commaByte, text(managed)])),
  );
}

const nobody: readonly OwnerReference[] = [];
const commaByte = Buffer.from([comma]);
const closeByte = Buffer.from('}');
const endBytes = Buffer.from('},');

/** A copy in memory of its own, not in the pool that small Buffers share. */
function copied(pieces: readonly Buffer[], length: number): Buffer {
  const memory = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) at += piece.copy(memory, at);
  return memory;
}
