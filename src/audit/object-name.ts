/** What a new object is called: who creates one names it in the body, or lets kube-apiserver choose. */
import { skipValue, valueOf } from '../cluster/cache/json-scan.ts';
import { AuditBody, type BodyHeaders } from './bodies.ts';

const [kindKey, metadataKey, detailsKey, nameKey] = ['kind', 'metadata', 'details', 'name'].map((key) =>
  Buffer.from(key),
) as [Buffer, Buffer, Buffer, Buffer];

/** metadata.name of the object that was answered, or of what a Status is about; '' if it cannot be told. */
export function nameIn(answer: AuditBody, headers: BodyHeaders): string {
  try {
    const bytes = answer.bytes(headers);
    return /^application\/vnd\.kubernetes\.protobuf\b/i.test(headers.type) ? ofProtobuf(bytes) : ofJSON(bytes);
  } catch {
    return '';
  }
}

/** Scans, because parsing 512 KiB would block the event loop. */
function ofJSON(bytes: Buffer): string {
  const holder = textOf(bytes, 0, kindKey) === 'Status' ? detailsKey : metadataKey;
  const at = valueOf(bytes, 0, holder);
  return at === undefined ? '' : textOf(bytes, at, nameKey);
}

/** The text that the object at `at` has under that key; '' if there is none. */
function textOf(bytes: Buffer, at: number, key: Buffer): string {
  const value = valueOf(bytes, at, key);
  if (value === undefined) return '';
  const text: unknown = JSON.parse(bytes.toString('utf8', value, skipValue(bytes, value)));
  return typeof text === 'string' ? text : '';
}

/** k8s.io/apimachinery pkg/runtime/serializer/protobuf: four bytes, then runtime.Unknown. */
const magic = Buffer.from('k8s\0', 'latin1');

/** Unknown.raw (2) is the object, the metadata (1) of which has its name (1), as every kind that is created has it. */
function ofProtobuf(bytes: Buffer): string {
  if (!bytes.subarray(0, magic.length).equals(magic)) return '';
  const unknown = bytes.subarray(magic.length);
  const kind = field(field(unknown, 1), 2).toString('utf8');
  // A Status has its name elsewhere: details (5), name (1).
  const object = field(unknown, 2);
  return field(field(object, kind === 'Status' ? 5 : 1), 1).toString('utf8');
}

/** The first length-delimited field of a number; empty if there is none. Throws for what is no message. */
function field(message: Buffer, wanted: number): Buffer {
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
      if (tag >>> 3 === wanted) return message.subarray(at, at + length);
      at += length;
    } else if (wire === 0) varint();
    else at += wire === 1 ? 8 : 4;
  }
  return message.subarray(0, 0);
}
