/** Negotiates the representation of objects at /apis and creates their views. */
import type { Request } from 'express';
import { badRequest, StatusError } from '../runtime/errors.ts';
import { negotiate } from '../http/request/negotiate.ts';
import { PreparedLists } from '../apimachinery/list/prepared.ts';
import {
  partialView,
  servedView,
  tableView,
  type MetaVersion,
  type TableOptions,
  type View,
} from '../apimachinery/list/views.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';

const offered = ['application/json', 'application/yaml'];

/** Representation that the Accept header requests: the objects themselves, or a kind of meta.k8s.io such as Table. */
export interface Target {
  readonly contentType: string;
  readonly kind: '' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';
  readonly version: MetaVersion;
  readonly pretty: boolean;
}

export function targetOf(req: Request, mediaTypes = offered): Target {
  return negotiate(
    req.headers.accept,
    mediaTypes,
    (contentType, { as: kind = '', g, v, stream = '', sv = '', pretty }) => {
      if ((stream !== '' && stream !== 'watch') || sv !== '') return undefined;
      const common = { contentType, pretty: pretty === '1' };
      if (kind === '' && g === undefined && v === undefined) return { ...common, kind, version: 'v1' };
      const isKnown = kind === 'Table' || kind === 'PartialObjectMetadata' || kind === 'PartialObjectMetadataList';
      return isKnown && g === 'meta.k8s.io' && (v === 'v1' || v === 'v1beta1')
        ? { ...common, kind, version: v }
        : undefined;
    },
  );
}

/** Throws 406 if a list is requested as the metadata of an object, or an object as the metadata of a list. */
export function checkTarget({ kind }: Target, isList: boolean, what: string): void {
  const wrong = isList ? 'PartialObjectMetadata' : 'PartialObjectMetadataList';
  if (kind === wrong)
    throw new StatusError(
      'NotAcceptable',
      406,
      `you requested ${wrong}, but the requested object is ${isList ? 'a' : 'not a'} list (${what})`,
    );
}

function includeObject(query: URLSearchParams): TableOptions['includeObject'] {
  const text = query.get('includeObject') || 'Metadata';
  if (text !== 'None' && text !== 'Metadata' && text !== 'Object')
    throw badRequest(
      `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(text)}: must be 'Metadata', 'Object', 'None', or empty`,
    );
  return text;
}

/** Views that requests share, so that watches share frames and lists share prepared responses. */
export class Views<F> {
  readonly #definition: ResourceDefinition<F>;
  readonly #views = new Map<string, View<F>>();
  readonly #prepared = new Map<View<F>, PreparedLists<F>>();

  constructor(definition: ResourceDefinition<F>) {
    this.#definition = definition;
  }

  of({ kind, version }: Target, query: URLSearchParams, noHeaders = false): View<F> {
    const definition = this.#definition;
    if (kind === '') return this.#shared('', () => servedView(definition));
    if (kind !== 'Table') return this.#shared(`metadata ${version}`, () => partialView(version));
    const include = includeObject(query);
    return this.#shared(`table ${version} ${include} ${noHeaders}`, () =>
      tableView(definition, { version, includeObject: include, noHeaders, now: Date.now }),
    );
  }

  prepared(view: View<F>): PreparedLists<F> {
    let lists = this.#prepared.get(view);
    if (lists === undefined) this.#prepared.set(view, (lists = new PreparedLists(view)));
    return lists;
  }

  #shared(key: string, make: () => View<F>): View<F> {
    let view = this.#views.get(key);
    if (view === undefined) this.#views.set(key, (view = make()));
    return view;
  }
}
