/** Finds the name of a created object, which the request body contains or kube-apiserver generates. */
import { skipValue, valueOf } from '../cluster/cache/json-scan.ts';
import { field, unknownObject } from '../runtime/protobuf.ts';
import { AuditBody, type BodyHeaders } from './bodies.ts';

const [kindKey, metadataKey, detailsKey, nameKey] = ['kind', 'metadata', 'details', 'name'].map((key) =>
  Buffer.from(key),
) as [Buffer, Buffer, Buffer, Buffer];

/** Returns metadata.name of the object in a response, or the name in the details of a Status; '' if there is none. */
export function objectNameIn(response: AuditBody, headers: BodyHeaders): string {
  try {
    const bytes = response.bytes(headers);
    if (/^application\/vnd\.kubernetes\.protobuf\b/i.test(headers.type)) return ofProtobuf(bytes);
    return /^application\/yaml\b/i.test(headers.type) ? ofYAML(bytes.toString('utf8')) : ofJSON(bytes);
  } catch {
    return '';
  }
}

/** Scans the bytes, because parsing 512 KiB would block the event loop. */
function ofJSON(bytes: Buffer): string {
  const holder = textOf(bytes, 0, kindKey) === 'Status' ? detailsKey : metadataKey;
  const at = valueOf(bytes, 0, holder);
  return at === undefined ? '' : textOf(bytes, at, nameKey);
}

/**
 * Reads the name in the block style of this server and of kube-apiserver, because parsing would block the event loop.
 */
function ofYAML(text: string): string {
  const holder = /^kind: Status$/m.test(text) ? 'details' : 'metadata';
  const [block = ''] = new RegExp(`^${holder}:\\n(?: .*\\n)*`, 'm').exec(text) ?? [];
  const [, quoted = '', name = ''] = /^ {2}name: (?:["'](.*)["']|(.*))$/m.exec(block) ?? [];
  return quoted + name;
}

/** Returns the string with this key in the object at `at`; '' if there is none. */
function textOf(bytes: Buffer, at: number, key: Buffer): string {
  const value = valueOf(bytes, at, key);
  if (value === undefined) return '';
  const text: unknown = JSON.parse(bytes.toString('utf8', value, skipValue(bytes, value)));
  return typeof text === 'string' ? text : '';
}

/** Reads metadata.name. In all kinds that can be created, metadata is field 1, and name is field 1 of metadata. */
function ofProtobuf(bytes: Buffer): string {
  const { kind, raw } = unknownObject(bytes) ?? { kind: '', raw: Buffer.alloc(0) };
  // In a Status, details is field 5, and name is field 1 of details.
  return field(field(raw, kind === 'Status' ? 5 : 1), 1).toString('utf8');
}
