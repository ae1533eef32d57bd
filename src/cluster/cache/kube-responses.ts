/** Splits lists and watch streams of kube-apiserver. The bytes of the objects are neither copied nor decoded. */
import { KubeError } from '../client/kube-error.ts';
import type { ChangeType, KubeObject } from '../client/kube-object.ts';
import {
  decodeObject,
  MalformedResponseError,
  membersOf,
  membersOfObject,
  readList,
  type ObjectMembers,
  type ObjectText,
} from './json-scan.ts';

/** The fields of metav1.ListMeta. */
export interface ListMeta {
  readonly resourceVersion?: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface SplitList {
  /** Kind of an item: the kind of the list without 'List'. */
  readonly kind: string;
  /** API version of the list and its items. */
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  /** The items, as views of the body's bytes. The items of built-in resources have no kind and no apiVersion. */
  readonly items: readonly ObjectText[];
}

/** Splits a list without decoding its items. Throws MalformedResponseError for any other body. */
export function splitList(body: Buffer): SplitList {
  const { top, items } = readList(body);
  const decode = (key: string): unknown => {
    const member = top.find((one) => one.key === key);
    return member === undefined ? undefined : JSON.parse(body.toString('utf8', member.value, member.end));
  };
  const kind = decode('kind');
  const apiVersion = decode('apiVersion');
  const metadata = decode('metadata') as ListMeta | undefined;
  if (typeof kind !== 'string' || typeof apiVersion !== 'string')
    throw new MalformedResponseError('the response is not a list');
  return { kind: kind.replace(/List$/, ''), apiVersion, metadata: metadata ?? {}, items };
}

interface WatchEvent {
  readonly type: ChangeType | 'BOOKMARK';
  readonly object: KubeObject;
  /** Bytes of the object, as a view of the event. */
  readonly bytes: Buffer;
  readonly members: ObjectMembers;
}

/** `unreadStatus`: member of the status that is not decoded. Throws KubeError for an event of type ERROR. */
export function parseWatchEvent(line: Buffer, unreadStatus?: string): WatchEvent {
  const { type, bytes } = splitEvent(line);
  const members = membersOfObject(bytes);
  const object = decodeObject(bytes, members, unreadStatus);
  if (type === 'ERROR') throw new KubeError((object as { code?: number }).code ?? 500, object as object);
  return { type: type as WatchEvent['type'], object: object as KubeObject, bytes, members };
}

const newline = 0x0a;
const closeBrace = 0x7d;
/** Start of an event as kube-apiserver writes it. */
const eventHead = /^\{"type":"([A-Z]+)","object":/;
const maxHeadLength = 40;

/** `{"type":"ADDED","object":{…}}`, as kube-apiserver writes it, needs no scan. */
function splitEvent(line: Buffer): { readonly type: unknown; readonly bytes: Buffer } {
  const head = eventHead.exec(line.toString('latin1', 0, maxHeadLength));
  if (head !== null && line.at(-1) === closeBrace) return { type: head[1], bytes: line.subarray(head[0].length, -1) };
  const members = membersOf(line, 0);
  const find = (key: string): Buffer => {
    const member = members.find((one) => one.key === key);
    if (member === undefined) throw new MalformedResponseError(`a watch event has no ${key}`);
    return line.subarray(member.value, member.end);
  };
  return { type: JSON.parse(find('type').toString('utf8')), bytes: find('object') };
}

/** Yields the non-empty lines of a stream, without line feeds. An incomplete last line is omitted. */
export async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let partial: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const rest = chunk.subarray(start, end);
      const line = partial.length === 0 ? rest : Buffer.concat([...partial, rest]);
      partial = [];
      start = end + 1;
      if (line.length > 0) yield line;
    }
    if (start < chunk.length) partial.push(chunk.subarray(start));
  }
}
