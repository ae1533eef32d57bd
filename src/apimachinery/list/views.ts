/**
 * Views turn stored objects into documents and watch frames. A view copies the bytes of objects without decoding them.
 */
import { lengthOf, type Streamed } from '../../http/response/write.ts';
import { gather, type StoredObject } from '../../cluster/cache/stored-object.ts';
import { Slice, type SignalSource } from '../../runtime/slice.ts';
import { groupVersion, type ResourceDefinition } from '../../cluster/catalogue/resource.ts';

/** The fields of metav1.ListMeta. */
export interface ListMetadata {
  readonly resourceVersion: number;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Encodes the items of a list, each followed by a comma. */
export interface Items<F> {
  bytesOf(objects: readonly StoredObject<F>[]): Buffer[];
  /** Returns the number of bytes of an item; undefined if the number is known only after an item is encoded. */
  readonly sizeOf: ((object: StoredObject<F>) => number) | undefined;
}

export interface View<F> {
  /** True if the view belongs to one request, so that its results are not cached. */
  readonly own?: true;
  /**
   * Lasting view from which this view was derived, and the key of the derivation. Views with the same `view` and `key`
   * show the same content.
   */
  readonly origin?: { readonly view: View<F>; readonly key: string };
  /** Encodes a single object as a document. */
  object(object: StoredObject<F>): Buffer[];
  readonly items: Items<F>;
  /**
   * Encodes the parts of a list before and after the items. `totalItems` is the count before paging; it is set only on
   * /kapis.
   */
  readonly frame: (metadata: ListMetadata, totalItems?: number) => readonly [head: Buffer, tail: Buffer];
  /** Encodes the object of a BOOKMARK. `initial` marks the end of the initial events. */
  readonly bookmark: (resourceVersion: number, initial: boolean) => Buffer[];
}

const close = Buffer.from('}');
const closeItem = Buffer.from('},');
const nothing = Buffer.from('null');
const endOfList = Buffer.from(']}');

/** Maximum items that are encoded at a time, and approximately their bytes. */
const chunk = 256;
const chunkBytes = 2 * 1024 * 1024;

/**
 * Encodes a list as a document. Its parts are produced in time slices; the iteration throws the signal's reason if the
 * signal is aborted.
 */
export function listOf<F>(
  view: View<F>,
  objects: readonly StoredObject<F>[],
  [head, tail]: readonly [Buffer, Buffer],
  waiting: SignalSource,
): Streamed {
  const { sizeOf = ({ length }) => length } = view.items;
  const endOf = (start: number): number => {
    let end = start;
    for (let bytes = 0; end < objects.length && end < start + chunk && bytes < chunkBytes; end += 1)
      bytes += sizeOf(objects[end] as StoredObject<F>);
    return end;
  };
  const pieces = (start: number, end: number): Buffer[] => {
    const items = view.items.bytesOf(objects.slice(start, end));
    return [...(start === 0 ? [head] : []), ...(end === objects.length ? [...withoutComma(items), tail] : items)];
  };
  const firstEnd = endOf(0);
  if (firstEnd === objects.length) {
    const all = pieces(0, firstEnd);
    return { length: lengthOf(all), parts: [all] };
  }
  async function* parts(): AsyncGenerator<Buffer[]> {
    const slice = new Slice(waiting);
    for (let start = 0, end = firstEnd; start < objects.length; start = end, end = endOf(start)) {
      if (slice.isOver) await slice.next();
      yield pieces(start, end);
    }
  }
  return { length: sizeOfList(view, objects, head.length + tail.length), parts: parts() };
}

function sizeOfList<F>(view: View<F>, objects: readonly StoredObject<F>[], frame: number): number | undefined {
  const { sizeOf } = view.items;
  if (sizeOf === undefined) return undefined;
  let length = frame - 1;
  for (const object of objects) length += sizeOf(object);
  return length;
}

const bookmarkOf =
  (kind: string, apiVersion: string): View<unknown>['bookmark'] =>
  (resourceVersion, initial) => {
    const metadata = {
      resourceVersion: String(resourceVersion),
      creationTimestamp: null,
      ...(initial ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    };
    return [Buffer.from(JSON.stringify({ kind, apiVersion, metadata }))];
  };

/** Encodes the parts of a list before and after the items: metav1.ListMeta before, and on /kapis the count after. */
function listFrame(
  kind: string,
  apiVersion: string,
  { resourceVersion, ...more }: ListMetadata,
  totalItems?: number,
): [head: Buffer, tail: Buffer] {
  const head = { kind, apiVersion, metadata: { resourceVersion: String(resourceVersion), ...more } };
  return [
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},"items":[`),
    totalItems === undefined ? endOfList : Buffer.from(`],"totalItems":${totalItems}}`),
  ];
}

/** Shows the object as the core API does, with kind, apiVersion and selfLink. */
export function coreView<F>(definition: ResourceDefinition<F>, managedFields: boolean): View<F> {
  const { kind, underlying } = definition;
  const apiVersion = groupVersion(underlying);
  return {
    object: (object) => withoutComma(managedFields ? whole(object) : [object.bytes]),
    items: managedFields
      ? {
          bytesOf: (objects) => objects.flatMap(whole),
          sizeOf: ({ length, managedFieldsLength }) => length + managedFieldsLength,
        }
      : { bytesOf: gather, sizeOf: ({ length }) => length },
    frame: (metadata, totalItems) => listFrame(`${kind}List`, apiVersion, metadata, totalItems),
    bookmark: bookmarkOf(kind, apiVersion),
  };
}

/** Returns the object with its managed fields, followed by a comma. */
function whole({ bytes, managedFields, metadataEnd }: StoredObject<unknown>): Buffer[] {
  if (managedFields === undefined) return [bytes];
  return [bytes.subarray(0, metadataEnd), managedFields, bytes.subarray(metadataEnd)];
}

/** Removes the last byte, which is a comma. */
function withoutComma(pieces: Buffer[]): Buffer[] {
  const last = pieces.pop();
  if (last !== undefined) pieces.push(last.subarray(0, -1));
  return pieces;
}

/** Shows the object with the apiVersion of this server's group, without selfLink. */
export function servedView<F>({ kind, served }: ResourceDefinition<F>): View<F> {
  const apiVersion = groupVersion(served);
  const head = Buffer.from(`{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":{`);
  return {
    object: (object) => [head, object.bytes.subarray(object.selfLinkEnd, -1)],
    items: {
      bytesOf: (objects) => objects.flatMap(({ bytes, selfLinkEnd }) => [head, bytes.subarray(selfLinkEnd)]),
      sizeOf: ({ length, selfLinkEnd }) => head.length + length - selfLinkEnd,
    },
    frame: (metadata) => listFrame(`${kind}List`, apiVersion, metadata),
    bookmark: bookmarkOf(kind, apiVersion),
  };
}

/** Versions of Table and PartialObjectMetadata in meta.k8s.io. Their fields are the same. */
export type MetaVersion = 'v1' | 'v1beta1';

const partialHead = (version: MetaVersion): Buffer =>
  Buffer.from(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${version}","metadata":{`);

const metadataOf = (object: StoredObject<unknown>): Buffer =>
  object.bytes.subarray(object.selfLinkEnd, object.metadataEnd + 1);

/** Shows only the metadata, as metav1.PartialObjectMetadata and its list. */
export function partialView(version: MetaVersion): View<unknown> {
  const head = partialHead(version);
  return {
    object: (object) => [head, metadataOf(object), close],
    items: {
      bytesOf: (objects) => objects.flatMap((object) => [head, metadataOf(object), closeItem]),
      sizeOf: undefined,
    },
    frame: (metadata) => listFrame('PartialObjectMetadataList', `meta.k8s.io/${version}`, metadata),
    bookmark: bookmarkOf('PartialObjectMetadata', `meta.k8s.io/${version}`),
  };
}

export interface TableOptions {
  readonly version: MetaVersion;
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  /** True to omit columnDefinitions, as in all frames of a watch except the first. */
  readonly noHeaders: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Shows objects as metav1.Table, which kubectl prints. */
export function tableView<F>(definition: ResourceDefinition<F>, options: TableOptions): View<F> {
  const { version, includeObject, noHeaders, now } = options;
  const apiVersion = `meta.k8s.io/${version}`;
  const served = servedView(definition);
  const partial = partialView(version);
  const columns = JSON.stringify(noHeaders ? null : definition.columns);

  const frame = ({ resourceVersion, ...more }: ListMetadata): readonly [Buffer, Buffer] => {
    const metadata = { resourceVersion: String(resourceVersion), ...more };
    const head = JSON.stringify({ kind: 'Table', apiVersion, metadata }).slice(0, -1);
    return [Buffer.from(`${head},"columnDefinitions":${columns},"rows":[`), endOfList];
  };

  function row(object: StoredObject<F>): Buffer[] {
    const cells = Buffer.from(`{"cells":${JSON.stringify(definition.cells(object, now()))},"object":`);
    if (includeObject === 'None') return [cells, nothing];
    return [cells, ...(includeObject === 'Object' ? served : partial).object(object)];
  }

  const single = (resourceVersion: number, content: readonly Buffer[]): Buffer[] => {
    const [head, tail] = frame({ resourceVersion });
    return [head, ...content, close, tail];
  };

  return {
    object: (object) => single(object.resourceVersion, row(object)),
    items: { bytesOf: (objects) => objects.flatMap((object) => [...row(object), closeItem]), sizeOf: undefined },
    frame,
    bookmark: (resourceVersion, initial) =>
      single(resourceVersion, [
        Buffer.from(`{"cells":${JSON.stringify(definition.columns.map(() => ''))},"object":`),
        ...partial.bookmark(resourceVersion, initial),
      ]),
  };
}
