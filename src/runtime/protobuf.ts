/** Reads single fields of protobuf messages, without a schema. */

/**
 * Returns the first length-delimited field with this number; empty if there is none. Throws RangeError if the message
 * is truncated.
 */
export const field = (message: Buffer, wanted: number): Buffer => fields(message, wanted)[0] ?? Buffer.alloc(0);

/** Returns all length-delimited fields with this number. Throws RangeError if the message is truncated. */
export function fields(message: Buffer, wanted: number): readonly Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++];
      if (byte === undefined) throw new RangeError('the message ends too early');
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const wire = tag & 7;
    if (wire === 2) {
      const length = varint();
      if (at + length > message.length) throw new RangeError('the message ends too early');
      if (tag >>> 3 === wanted) found.push(message.subarray(at, at + length));
      at += length;
    } else if (wire === 0) varint();
    else at += wire === 1 ? 8 : 4;
  }
  return found;
}

/**
 * The four bytes that precede each Kubernetes object in protobuf, which is a runtime.Unknown (k8s.io/apimachinery
 * pkg/runtime/serializer/protobuf).
 */
const magic = Buffer.from('k8s\0', 'latin1');

/** Object in the protobuf form of Kubernetes. */
export interface UnknownObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Buffer;
}

/** Reads the type and the bytes of an object; undefined if the bytes are not in this form. */
export function unknownObject(bytes: Buffer): UnknownObject | undefined {
  if (!bytes.subarray(0, magic.length).equals(magic)) return undefined;
  const unknown = bytes.subarray(magic.length);
  const type = field(unknown, 1);
  return {
    apiVersion: field(type, 1).toString('utf8'),
    kind: field(type, 2).toString('utf8'),
    raw: field(unknown, 2),
  };
}
