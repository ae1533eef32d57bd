import { membersOf, type Member } from './json-scan.ts';
import type { KubeObject, OwnerReference } from './kube-object.ts';

/**
 * One state of one object: its bytes outside the V8 heap and beside them what lists filter and sort by. Never altered.
 *
 * `bytes` is the object as kube-apiserver wrote it, but with kind, apiVersion and metadata first, with metadata.selfLink, without
 * managedFields, and with the comma that follows it in a list:
 *
 *     {"kind":"Node","apiVersion":"v1","metadata":{"selfLink":"/api/v1/nodes/n1","name":"n1",…},"spec":…},
 *                                      ↑ metadata  ↑ selfLink           ends here ↑     ↑ metadataEnd
 */
export interface StoredObject<F> {
  readonly name: string;
  /** '' at cluster scope. */
  readonly namespace: string;
  readonly uid: string;
  /** The etcd revision: a whole number below 2^53. */
  readonly resourceVersion: number;
  /** Milliseconds since the epoch, 0 if unknown. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /** What the resource itself wants to have at hand. */
  readonly fields: F;
  readonly bytes: Buffer;
  /** Offset of metadata's brace. */
  readonly metadata: number;
  /** Offset behind `"selfLink":"…",`. */
  readonly selfLinkEnd: number;
  /** Offset of metadata's closing brace. */
  readonly metadataEnd: number;
  /** Offsets of the digits of metadata.resourceVersion. */
  readonly version: readonly [start: number, end: number];
  /** `,"managedFields":[…]`, which belongs before `metadataEnd`; empty if there are none. */
  readonly managedFields: Buffer;
}

export interface StoredObjectOptions<F> {
  /** metadata.selfLink, the object's path in the API it was read from. */
  selfLink(object: KubeObject): string;
  fields(object: KubeObject): F;
}

const comma = 0x2c;
const none: Readonly<Record<string, never>> = {};
const noBytes = Buffer.alloc(0);

/** Throws SyntaxError if the bytes are no object with metadata and a numeric resourceVersion. */
export function storeObject<F>(object: KubeObject, source: Buffer, options: StoredObjectOptions<F>): StoredObject<F> {
  const top = membersOf(source, source.indexOf('{'));
  const at = top.find(({ key }) => key === 'metadata');
  if (at === undefined) throw new SyntaxError('an object has no metadata');
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
  let version: [number, number] | undefined;
  for (const [index, member] of kept.entries()) {
    if (index > 0) push(commaByte);
    const piece = text(member);
    if (member.key === 'resourceVersion') {
      const end = length + piece.length - 1;
      version = [end - (member.end - member.value - 2), end];
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
  const bytes = copied(pieces, length);

  const resourceVersion = Number(object.metadata.resourceVersion);
  if (version === undefined || !Number.isSafeInteger(resourceVersion))
    throw new SyntaxError('an object has no numeric resourceVersion');
  const managed = metadata.find(({ key }) => key === 'managedFields');
  const { name, namespace = '', uid = '', labels, annotations, ownerReferences, creationTimestamp } = object.metadata;
  return {
    name,
    namespace,
    uid,
    resourceVersion,
    createdAt: creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp) || 0,
    labels: labels ?? none,
    annotations: annotations ?? none,
    ownerReferences: ownerReferences ?? [],
    fields: options.fields(object),
    bytes,
    metadata: head.length - 1,
    selfLinkEnd: head.length + selfLink.length,
    metadataEnd,
    version,
    managedFields:
      managed === undefined ? noBytes : copied([commaByte, text(managed)], 1 + managed.end - managed.start),
  };
}

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

/** The same state under another resourceVersion: how a watch shows an object that it has to take away. */
export function withResourceVersion<F>(object: StoredObject<F>, resourceVersion: number): StoredObject<F> {
  const [start, end] = object.version;
  const digits = Buffer.from(String(resourceVersion));
  const { bytes } = object;
  const pieces = [bytes.subarray(0, start), digits, bytes.subarray(end)];
  const more = digits.length - (end - start);
  return {
    ...object,
    resourceVersion,
    bytes: copied(pieces, bytes.length + more),
    metadataEnd: object.metadataEnd + more,
    version: [start, end + more],
  };
}

/** Bytes that the object holds outside the V8 heap. */
export const sizeOf = (object: StoredObject<unknown>): number => object.bytes.length + object.managedFields.length;
