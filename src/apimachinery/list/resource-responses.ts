import type { Request, Response } from 'express';
import { negotiate, prefersYAML } from '../../http/request/negotiate.ts';
import { formatted, writeDocument } from '../../http/response/pretty.ts';
import { writeList, type Streamed } from '../../http/response/write.ts';
import type { SignalSource } from '../../runtime/slice.ts';
import type { Store } from '../../cluster/cache/store.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import { PreparedLists } from './prepared.ts';
import { projected } from './projection.ts';
import { pageOf, type ListPage, type ListQuery, type ShownQuery } from './query.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { coreView, listOf, type View } from './views.ts';

const json = 'application/json';
const yaml = 'application/yaml';

/** Media types of objects and lists. */
export const objectTypes = [json, yaml];

/** Returns the media type that the caller prefers. Throws 406. */
export const objectTypeOf = ({ headers: { accept } }: Pick<Request, 'headers'>): string =>
  negotiate(accept, objectTypes, (type) => type);

/** Throws 406 unless the caller accepts a media type of objects. */
export const assertAcceptsObjects = (req: Pick<Request, 'headers'>): void => void objectTypeOf(req);

/** Returns the media type of an accepted request. */
const negotiated = (req: Request): string => (prefersYAML(req.headers.accept) ? yaml : json);

interface Source<F> {
  readonly store: Store<F>;
  /** True if the store outlives the request, so that it is worthwhile to prepare a compressed list. */
  readonly lasting: boolean;
}

/** Writes the responses with objects of one resource, from any store. */
export class ResourceResponses<F> {
  readonly #plain: View<F>;
  readonly #full: View<F>;
  /** Prepared lists by shown fields and order. */
  readonly #prepared = new Map<string, PreparedLists<F>>();

  constructor(definition: ResourceDefinition<F>) {
    this.#plain = coreView(definition, false);
    this.#full = coreView(definition, true);
  }

  view({ managedFields, fields }: Omit<ShownQuery, 'pretty'>): View<F> {
    const view = managedFields ? this.#full : this.#plain;
    return fields === undefined ? view : projected(view, fields);
  }

  /** Writes the page of a list that the query requests. */
  async list(req: Request, res: Response, waiting: SignalSource, query: ListQuery<F>, from: Source<F>): Promise<void> {
    await this.page(req, res, waiting, query, from, await pageOf(from.store, query, waiting));
  }

  async page(
    req: Request,
    res: Response,
    waiting: SignalSource,
    query: ListQuery<F>,
    { store, lasting }: Source<F>,
    { objects, total, resourceVersion }: ListPage<F>,
  ): Promise<void> {
    const contentType = negotiated(req);
    const isFormatted = query.pretty || contentType === yaml;
    const isWhole = lasting && query.limit === -1 && query.filters.length === 0 && typeof query.order === 'string';
    const view = this.view(query);
    const frame = view.frame({ resourceVersion }, total);
    const plain = async (): Promise<Streamed> => {
      if (isWhole && query.order === 'newest') await store.tidy(waiting);
      const document = listOf(view, objects, frame, waiting);
      return isFormatted ? formatted(document.parts, contentType, waiting) : document;
    };
    const gzipped =
      isWhole && view.own !== true && !isFormatted
        ? (): Promise<Buffer[]> => this.#preparedFor(query, view).gzip(objects, frame)
        : undefined;
    await writeList(req, res, { contentType, items: objects, plain, gzipped });
  }

  async object(
    req: Request,
    res: Response,
    waiting: SignalSource,
    query: ShownQuery,
    object: StoredObject<F>,
  ): Promise<void> {
    const body = this.view(query).object(object);
    await writeDocument(req, res, { contentType: negotiated(req), body, pretty: query.pretty }, waiting);
  }

  #preparedFor({ managedFields, order, reversed }: ListQuery<F>, view: View<F>): PreparedLists<F> {
    const key = JSON.stringify([managedFields, order, reversed]);
    let lists = this.#prepared.get(key);
    if (lists === undefined) this.#prepared.set(key, (lists = new PreparedLists(view)));
    return lists;
  }
}
