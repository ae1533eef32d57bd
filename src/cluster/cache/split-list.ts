import { elementsOf, membersOf } from './json-scan.ts';

/** metav1.ListMeta. */
export interface ListMeta {
  readonly resourceVersion?: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface SplitList {
  /** What one item is: the list's kind without 'List', and the list's apiVersion. */
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  /** Views of the items in the body, as they stand there. */
  readonly items: readonly Buffer[];
}

/** A list's body, taken apart without decoding its items. Throws SyntaxError for what is no list. */
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
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') throw new SyntaxError('the answer is no list');
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

/** An item of a typed list comes without kind and apiVersion; this puts them in front. */
export const withTypeMeta = (item: Buffer, kind: string, apiVersion: string): Buffer =>
  Buffer.concat([
    Buffer.from(`{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`),
    item.subarray(item.indexOf('{') + 1),
  ]);
