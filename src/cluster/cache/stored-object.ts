import { BoundedCache } from '../../runtime/bounded-cache.ts';
import {
  MalformedResponseError,
  membersOfObject,
  skipValue,
  valueOf,
  type Member,
  type ObjectMembers,
} from './json-scan.ts';
import type { KubeObject, OwnerReference } from '../client/kube-object.ts';
import type { ManagedFields } from './managed-fields.ts';
import type { Packed } from './packed.ts';
import type { Slab } from './slab.ts';
import { parseMilliseconds } from '../../runtime/time.ts';

/** Offsets of parts of an object in its bytes. */
interface Layout {
  /** Offset of the opening brace of metadata. */
  readonly metadata: number;
  /** Offset after `"selfLink":"…",`. */
  readonly selfLinkEnd: number;
  /** Offset of the closing brace of metadata. */
  readonly metadataEnd: number;
  /** Offsets of the digits of metadata.resourceVersion. */
  readonly versionStart: number;
  readonly versionEnd: number;
}

/** Decoded values by which lists filter and sort. */
interface Indexed<F> {
  readonly name: string;
  /** Namespace; '' for a cluster-scoped object. */
  readonly namespace: string;
  readonly uid: string;
  /** The etcd revision: a whole number below 2^53. */
  readonly resourceVersion: number;
  /** Creation time in milliseconds since the epoch; 0 if unknown. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /** Values that the definition of the resource extracts. */
  readonly fields: F;
}

/** Maximum memoized values of an object. */
const maxMemoized = 16;

/**
 * Numbers of memoized values, by description. Requests choose the descriptions, so objects must not retain the text.
 */
const memoKeys = new BoundedCache<number>({
  name: 'remembered_paths',
  maxEntries: 1_000,
  maxBytes: 1024 * 1024,
  ttl: 3_600_000,
});
let memoKeyCount = 0;

/**
 * Returns the key under which objects memoize the described value. An evicted description gets a new key, and its value
 * is computed again.
 */
export function memoKeyOf(description: string): number {
  let key = memoKeys.get(description);
  if (key === undefined) memoKeys.set(description, (key = memoKeyCount += 1));
  return key;
}

/**
 * One version of an object: its bytes, outside the V8 heap, and the values by which lists filter and sort. The content
 * is immutable; the location of the bytes may change.
 *
 * `bytes` is the object as kube-apiserver wrote it, except that kind, apiVersion and metadata come first,
 * metadata.selfLink is added, managedFields is removed, and a comma is appended for use in a list:
 *
 *     {"kind":"Node","apiVersion":"v1","metadata":{"selfLink":"/api/v1/nodes/n1","name":"n1",…},"spec":…},
 *                                                 ↑ metadata         selfLinkEnd ↑            ↑ metadataEnd
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
  /** Length of the bytes. */
  readonly length: number;
  readonly #managedFields: Packed | undefined;
  /** Dedicated memory of a new object, or the slab that contains the bytes. */
  #memory: Buffer | Slab;
  #start: number;
  #memo: Map<number, unknown> | undefined;

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
    this.#memory = bytes;
    this.#start = 0;
  }

  /** View of the bytes. */
  get bytes(): Buffer {
    const memory = Buffer.isBuffer(this.#memory) ? this.#memory : this.#memory.memory;
    return memory.subarray(this.#start, this.#start + this.length);
  }

  /** `,"managedFields":[…]`, to insert at `metadataEnd`; undefined if there are none. */
  get managedFields(): Buffer | undefined {
    return this.#managedFields?.bytes;
  }

  get annotations(): Readonly<Record<string, string>> {
    const { bytes } = this;
    const at = valueOf(bytes, this.metadata, annotationsKey);
    if (at === undefined) return noEntries;
    return JSON.parse(bytes.toString('utf8', at, skipValue(bytes, at))) as Record<string, string>;
  }

  /** Slab that contains the bytes; undefined for a new object. */
  get slab(): Slab | undefined {
    return Buffer.isBuffer(this.#memory) ? undefined : this.#memory;
  }

  /** Length of `managedFields`. */
  get managedFieldsLength(): number {
    return this.#managedFields?.length ?? 0;
  }

  /** Bytes of memory that the managedFields take, except for templates. */
  get managedFieldsSize(): number {
    return this.#managedFields?.size ?? 0;
  }

  /** Returns true if the bytes directly follow the bytes of the other object in the same slab. */
  follows(other: StoredObject<unknown>): boolean {
    return this.#memory === other.#memory && this.#start === other.#start + other.length;
  }

  /** Moves the bytes to a slab. */
  moveTo(slab: Slab, start: number): void {
    this.bytes.copy(slab.memory, start);
    this.#memory = slab;
    this.#start = start;
  }

  /** Returns the memoized value of the key. The first call computes the value. */
  memoize<T>(key: number, find: (object: StoredObject<unknown>) => T): T {
    const known = this.#memo?.get(key);
    if (known !== undefined || this.#memo?.has(key) === true) return known as T;
    const found = find(this);
    if (this.#memo === undefined || this.#memo.size === maxMemoized) this.#memo = new Map();
    this.#memo.set(key, found);
    return found;
  }

  /** Returns the same object with another resourceVersion, for DELETED events. */
  withResourceVersion(resourceVersion: number): StoredObject<F> {
    const { bytes, versionStart, versionEnd } = this;
    const digits = Buffer.from(String(resourceVersion));
    const more = digits.length - (versionEnd - versionStart);
    const pieces = [bytes.subarray(0, versionStart), digits, bytes.subarray(versionEnd)];
    return new StoredObject<F>(
      { ...(this as Indexed<F>), resourceVersion },
      { ...(this as Layout), metadataEnd: this.metadataEnd + more, versionEnd: versionEnd + more },
      concat(pieces, bytes.length + more),
      this.#managedFields,
    );
  }
}

/** Returns the concatenated bytes of the objects, in one piece per contiguous run. */
export function gather(objects: readonly StoredObject<unknown>[]): Buffer[] {
  const pieces: Buffer[] = [];
  let first = 0;
  for (let i = 1; i <= objects.length; i += 1) {
    const last = objects[i - 1] as StoredObject<unknown>;
    if (objects[i]?.follows(last) === true) continue;
    const { bytes } = objects[first] as StoredObject<unknown>;
    pieces.push(first === i - 1 ? bytes : spanOf(bytes, last.bytes));
    first = i;
  }
  return pieces;
}

/** Returns a view from the start of one view to the end of another in the same memory. */
const spanOf = (from: Buffer, to: Buffer): Buffer =>
  Buffer.from(from.buffer, from.byteOffset, to.byteOffset + to.length - from.byteOffset);

export interface StoredObjectOptions<F> {
  /** Returns metadata.selfLink: the path of the object in the API from which it was read. */
  selfLink(object: KubeObject): string;
  fields(object: KubeObject): F;
  /** Store of the managedFields of the resource. */
  readonly managedFields: ManagedFields;
}

const annotationsKey = Buffer.from('annotations');
const comma = 0x2c;
const noEntries: Readonly<Record<string, never>> = {};

/** Throws MalformedResponseError unless the bytes are an object with metadata and a numeric resourceVersion. */
export function storeObject<F>(
  object: KubeObject,
  source: Buffer,
  options: StoredObjectOptions<F>,
  { top, metadata }: ObjectMembers = membersOfObject(source),
): StoredObject<F> {
  if (metadata.length === 0) throw new MalformedResponseError('an object has no metadata');
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
    labels = noEntries,
    ownerReferences = noOwners,
    creationTimestamp,
  } = object.metadata;
  const createdAt = creationTimestamp === undefined ? 0 : parseMilliseconds(creationTimestamp) || 0;
  return new StoredObject<F>(
    { name, namespace, uid, resourceVersion, createdAt, labels, ownerReferences, fields: options.fields(object) },
    { metadata: head.length - 1, selfLinkEnd: head.length + selfLink.length, metadataEnd, ...version },
    concat(pieces, length),
    managed === undefined ? undefined : options.managedFields.pack(withComma(source, managed)),
  );
}

/** Returns a member with a comma before it: as a view of the source, if the comma is there. */
const withComma = (source: Buffer, { start, end }: Member): Buffer =>
  source[start - 1] === comma
    ? source.subarray(start - 1, end)
    : Buffer.concat([commaByte, source.subarray(start, end)]);

const noOwners: readonly OwnerReference[] = [];
const commaByte = Buffer.from([comma]);
const closeByte = Buffer.from('}');
const endBytes = Buffer.from('},');

/** Concatenates the pieces in dedicated memory, not in the pool that small Buffers share. */
function concat(pieces: readonly Buffer[], length: number): Buffer {
  const memory = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) at += piece.copy(memory, at);
  return memory;
}

/**
 * Returns the value of a label; undefined if there is none. Ignores properties that every JavaScript object inherits.
 */
export function labelOf({ labels }: StoredObject<unknown>, key: string): string | undefined {
  const value: unknown = labels[key];
  return typeof value === 'string' ? value : undefined;
}
