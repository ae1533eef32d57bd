/** Splits lists and watch streams of kube-apiserver. The bytes of the objects are neither copied nor decoded. */
import { KubeError } from '../client/kube-error.ts';
import type { ChangeType, KubeObject } from '../client/kube-object.ts';
import { decodeWithoutManagedFields, elementsOf, MalformedResponseError, membersOf } from './json-scan.ts';

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
  /** The items, as views of the body's bytes. */
  readonly items: readonly Buffer[];
}

/** Splits a list without decoding its items. Throws MalformedResponseError for any other body. */
export function splitList(body: Buffer): SplitList {
  const list = new Map(membersOf(body, 0).map((member) => [member.key, member]));
  const decode = (key: string): unknown => {
    const member = list.get(key);
    return member === undefined ? undefined : JSON.parse(body.toString('utf8', member.value, member.end));
  };
  const items = list.get('items');
  const kind = decode('kind');
  const apiVersion = decode('apiVersion');
  const metadata = decode('metadata') as ListMeta | undefined;
  if (typeof kind !== 'string' || typeof apiVersion !== 'string')
    throw new MalformedResponseError('the response is not a list');
  return {
    kind: kind.replace(/List$/, ''),
    apiVersion,
    metadata: metadata ?? {},
    items:
      items === undefined || body.toString('utf8', items.value, items.end) === 'null'
        ? []
        : elementsOf(body, items.value),
  };
}

/** Prepends kind and apiVersion to an item, because a typed list omits them. */
export const withTypeMeta = (item: Buffer, kind: string, apiVersion: string): Buffer =>
  Buffer.concat([
    Buffer.from(`{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`),
    item.subarray(item.indexOf('{') + 1),
  ]);

interface WatchEvent {
  readonly type: ChangeType | 'BOOKMARK';
  readonly object: KubeObject;
}

/** Throws KubeError for an event of type ERROR. */
export function parseWatchEvent(line: Buffer): WatchEvent {
  const event = decodeWithoutManagedFields(line) as
    WatchEvent | { readonly type: 'ERROR'; readonly object: { readonly code?: number } };
  if (event.type === 'ERROR') throw new KubeError(event.object.code ?? 500, event.object);
  return event;
}

const newline = 0x0a;
const closeBrace = 0x7d;

/**
 * Returns the bytes of the object of an event. `{"type":"ADDED","object":{…}}`, as kube-apiserver writes it, needs no
 * scan.
 */
export function objectBytes(line: Buffer, type: string): Buffer {
  const head = `{"type":"${type}","object":`;
  if (line.toString('latin1', 0, head.length) === head && line.at(-1) === closeBrace)
    return line.subarray(head.length, -1);
  const member = membersOf(line, 0, 'object').at(-1);
  if (member?.key !== 'object') throw new MalformedResponseError('a watch event has no object');
  return line.subarray(member.value, member.end);
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
