/**
 * How objects look on the wire: a view turns stored objects into documents and watch frames. Bytes are passed on, never decoded.
 */
import type { StoredObject } from '../kube/stored-object.ts';
import { groupVersion, type ResourceDefinition } from './resource.ts';

/** What a list says about itself. */
export interface ListMetadata {
  readonly resourceVersion: number;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface View<F> {
  /** Made for one request: nobody else has a use for what it makes. */
  readonly own?: true;
  /** A single object as a document. */
  object(object: StoredObject<F>): Buffer[];
  /** `totalItems`: the count before paging, of /kapis alone. */
  list(objects: readonly StoredObject<F>[], metadata: ListMetadata, totalItems?: number): Buffer[];
  /** The object of a BOOKMARK. `initial`: the one that ends the initial events. */
  bookmark(resourceVersion: number, initial: boolean): Buffer[];
}

const close = Buffer.from('}');
const endOfList = Buffer.from(']}');
const comma = Buffer.from(',');

const bookmarkMetadata = (resourceVersion: number, initial: boolean): string =>
  JSON.stringify({
    resourceVersion: String(resourceVersion),
    creationTimestamp: null,
    ...(initial ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  });

/** metav1.ListMeta and, on /kapis, the count behind the items. */
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

/** The object as the core API has it, with kind, apiVersion and selfLink. */
export function coreView<F>(definition: ResourceDefinition<F>, managedFields: boolean): View<F> {
  const { kind, underlying } = definition;
  const apiVersion = groupVersion(underlying);
  /** With the comma that follows it. */
  const item = (object: StoredObject<F>): Buffer[] =>
    managedFields && object.managedFields.length > 0
      ? [object.bytes.subarray(0, object.metadataEnd), object.managedFields, object.bytes.subarray(object.metadataEnd)]
      : [object.bytes];
  return {
    object: (object) => withoutComma(item(object)),
    list(objects, metadata, totalItems) {
      const [head, tail] = listFrame(`${kind}List`, apiVersion, metadata, totalItems);
      const body = [head];
      for (const object of objects) body.push(...item(object));
      if (objects.length > 0) withoutComma(body);
      body.push(tail);
      return body;
    },
    bookmark: (resourceVersion, initial) => [
      Buffer.from(
        `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${bookmarkMetadata(resourceVersion, initial)}}`,
      ),
    ],
  };
}

/** Takes the last byte, which is a comma, off. */
function withoutComma(pieces: Buffer[]): Buffer[] {
  const last = pieces.at(-1) as Buffer;
  pieces[pieces.length - 1] = last.subarray(0, -1);
  return pieces;
}

/** The object under the apiVersion of our own group, without selfLink. */
export function servedView<F>({ kind, served }: ResourceDefinition<F>): View<F> {
  const apiVersion = groupVersion(served);
  const head = Buffer.from(`{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":{`);
  return {
    object: (object) => [head, object.bytes.subarray(object.selfLinkEnd, -1)],
    list(objects, metadata) {
      const [start, tail] = listFrame(`${kind}List`, apiVersion, metadata);
      const body = [start];
      for (const object of objects) body.push(head, object.bytes.subarray(object.selfLinkEnd));
      if (objects.length > 0) withoutComma(body);
      body.push(tail);
      return body;
    },
    bookmark: (resourceVersion, initial) => [
      Buffer.from(
        `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${bookmarkMetadata(resourceVersion, initial)}}`,
      ),
    ],
  };
}

/** meta.k8s.io's versions of Table and PartialObjectMetadata are alike. */
export type MetaVersion = 'v1' | 'v1beta1';

const partialHead = (version: MetaVersion): Buffer =>
  Buffer.from(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${version}","metadata":{`);

const metadataOf = (object: StoredObject<unknown>): Buffer =>
  object.bytes.subarray(object.selfLinkEnd, object.metadataEnd + 1);

/** metav1.PartialObjectMetadata and its list: the metadata alone. */
export function partialView(version: MetaVersion): View<unknown> {
  const head = partialHead(version);
  return {
    object: (object) => [head, metadataOf(object), close],
    list(objects, metadata) {
      const [start, tail] = listFrame('PartialObjectMetadataList', `meta.k8s.io/${version}`, metadata);
      const body = [start];
      for (const [index, object] of objects.entries()) {
        if (index > 0) body.push(comma);
        body.push(head, metadataOf(object), close);
      }
      body.push(tail);
      return body;
    },
    bookmark: (resourceVersion, initial) => [
      Buffer.from(
        `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${version}","metadata":${bookmarkMetadata(resourceVersion, initial)}}`,
      ),
    ],
  };
}

export interface TableOptions {
  readonly version: MetaVersion;
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  /** Without columnDefinitions: all frames of a watch but the first. */
  readonly noHeaders: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** metav1.Table: what kubectl prints. */
export function tableView<F>(definition: ResourceDefinition<F>, options: TableOptions): View<F> {
  const { version, includeObject, noHeaders, now } = options;
  const apiVersion = `meta.k8s.io/${version}`;
  const served = servedView(definition);
  const partial = partialView(version);
  const columns = JSON.stringify(noHeaders ? null : definition.columns);

  function table(metadata: object, rows: readonly Buffer[]): Buffer[] {
    const head = JSON.stringify({ kind: 'Table', apiVersion, metadata }).slice(0, -1);
    return [Buffer.from(`${head},"columnDefinitions":${columns},"rows":[`), ...rows, endOfList];
  }

  function rowsOf(objects: readonly StoredObject<F>[]): Buffer[] {
    const time = now();
    const rows: Buffer[] = [];
    for (const [index, object] of objects.entries()) {
      const cells = JSON.stringify(definition.cells(object, time));
      rows.push(
        Buffer.from(`${index === 0 ? '' : ','}{"cells":${cells},"object":${includeObject === 'None' ? 'null' : ''}`),
      );
      if (includeObject === 'Object') rows.push(...served.object(object));
      else if (includeObject === 'Metadata') rows.push(...partial.object(object));
      rows.push(close);
    }
    return rows;
  }

  return {
    object: (object) => table({ resourceVersion: String(object.resourceVersion) }, rowsOf([object])),
    list: (objects, { resourceVersion, ...more }) =>
      table({ resourceVersion: String(resourceVersion), ...more }, rowsOf(objects)),
    bookmark: (resourceVersion, initial) =>
      table({ resourceVersion: String(resourceVersion) }, [
        Buffer.from(`{"cells":${JSON.stringify(definition.columns.map(() => ''))},"object":`),
        ...partial.bookmark(resourceVersion, initial),
        close,
      ]),
  };
}
