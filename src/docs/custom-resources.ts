/**
 * `/swagger/custom-resources.json` and `/swagger/custom-resources.v3.json`: the custom resources of the cluster in Swagger 2.0 and OpenAPI
 * 3.1, made from their CustomResourceDefinitions. A request reads the definitions that have changed.
 */
import { serviceUnavailable } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { documentSchema, PreparedDocument } from '../http/response/prepared-document.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { Discovery } from '../cluster/discovery.ts';
import { Slice, type WaitingSlice } from '../runtime/slice.ts';
import type { Logger } from '../runtime/logger.ts';
import { documentOf, write, type DocumentForm, type Written } from './openapi/custom-documents.ts';
import { withoutSchemas, type Definition } from './openapi/custom-resource.ts';
import { cached } from './platform.ts';

export interface CustomResourcesOptions {
  readonly client: Pick<KubeClient, 'json'>;
  readonly discovery: Pick<Discovery, 'waitForSync' | 'resources'>;
  readonly log: Logger;
  /** Version of this server. */
  readonly version: string;
  readonly issuer: () => string;
}

interface Known extends Written {
  readonly revision: string;
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** Maximum number of definitions that are read at the same time. */
const atOnce = 8;
/** Milliseconds for the discovery of the cluster, and for a definition. */
const longestWait = 5_000;
/** Milliseconds before a failed read is repeated. */
const retryInterval = 1_000;
/** Bytes of a document. Definitions beyond are left out, and the document says so. */
const largest = 64 * 1024 * 1024;

/** The documents of the current definitions. */
class CustomResourceDocuments {
  readonly #options: CustomResourcesOptions;
  /** By name of the definition. */
  readonly #known = new Map<string, Known>();
  #made: { readonly of: string; readonly documents: Readonly<Record<DocumentForm, PreparedDocument>> } | undefined;
  #making: Promise<void> | undefined;
  #notBefore = 0;

  constructor(options: CustomResourcesOptions) {
    this.#options = options;
  }

  /** Definitions that cannot be read are as they were before. */
  async get(form: DocumentForm, { signal }: WaitingSlice): Promise<PreparedDocument> {
    const waiting = AbortSignal.any([signal, AbortSignal.timeout(longestWait)]);
    await this.#options.discovery.waitForSync(waiting).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw serviceUnavailable('the resources of the cluster are not known yet', 1, cause);
    });
    const isCurrent = this.#made?.of === this.#keyOf(this.#revisions());
    if (!isCurrent && (this.#made === undefined || Date.now() >= this.#notBefore))
      await (this.#making ??= this.#make().finally(() => {
        this.#making = undefined;
      }));
    if (this.#made === undefined) throw serviceUnavailable('the custom resources cannot be read now');
    return this.#made.documents[form];
  }

  /** Of all definitions, by name. */
  #revisions(): ReadonlyMap<string, string> {
    return new Map(
      this.#options.discovery.resources
        .filter(({ revision }) => revision !== '')
        .map(({ resource, group, revision }) => [`${resource}.${group}`, revision]),
    );
  }

  #keyOf(revisions: ReadonlyMap<string, string>): string {
    return JSON.stringify([this.#options.issuer(), ...[...revisions].map((one) => one.join(' ')).toSorted()]);
  }

  async #make(): Promise<void> {
    const { log, version, issuer } = this.#options;
    const revisions = this.#revisions();
    for (const name of this.#known.keys()) if (!revisions.has(name)) this.#known.delete(name);
    const problem = await this.#readChanged(revisions);
    if (problem !== undefined) {
      this.#notBefore = Date.now() + retryInterval;
      log.warn('a CustomResourceDefinition cannot be read, so it is not described', { error: problem });
    }
    const written = [...this.#known].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
    const document = (form: DocumentForm): PreparedDocument =>
      new PreparedDocument(documentOf(form, written, { version, issuer: issuer(), largest }));
    this.#made = {
      // A failed read is repeated.
      of: problem === undefined ? this.#keyOf(revisions) : '',
      documents: { v2: document('v2'), v3: document('v3') },
    };
  }

  /** Returns why a definition could not be read; undefined if all could. */
  async #readChanged(revisions: ReadonlyMap<string, string>): Promise<unknown> {
    const changed = [...revisions].filter(([name, revision]) => this.#known.get(name)?.revision !== revision);
    const slice = new Slice();
    let problem: unknown;
    for (let at = 0; at < changed.length; at += atOnce) {
      const results = await Promise.allSettled(
        changed.slice(at, at + atOnce).map(([name, revision]) => this.#read(name, revision, slice)),
      );
      const failed = results.filter((one) => one.status === 'rejected');
      problem = failed[0]?.reason ?? problem;
      // If all fail, the others probably fail too.
      if (failed.length === results.length) break;
    }
    return problem;
  }

  async #read(name: string, revision: string, slice: Slice): Promise<void> {
    const path = `${definitions}/${name}`;
    const definition = await this.#options.client.json<Definition>(path, { timeout: longestWait });
    if (slice.isOver) await slice.next();
    this.#known.set(name, { revision, ...this.#describe(name, definition) });
  }

  /** A schema may be too deep to be written. */
  #describe(name: string, definition: Definition): Written {
    try {
      return write(definition);
    } catch (error) {
      this.#options.log.warn('the schema of a CustomResourceDefinition cannot be described', { name, error });
      return write(withoutSchemas(definition));
    }
  }
}

export function customResourcesRoutes(options: CustomResourcesOptions): readonly Route[] {
  const documents = new CustomResourceDocuments(options);
  const route = (path: string, format: string, form: DocumentForm): Route =>
    defineRoute({
      method: 'get',
      path,
      summary: `Get the custom resources in ${format}`,
      description: `Describes the custom resources of the cluster, made from its CustomResourceDefinitions. Needs credentials, but no right. ${cached}`,
      access: authenticated,
      responses: json(documentSchema, 'The description'),
      handler: async ({ req, res, context }) => (await documents.get(form, context)).answer(req, res, context),
    });
  return [
    route('/swagger/custom-resources.json', 'Swagger 2.0', 'v2'),
    route('/swagger/custom-resources.v3.json', 'OpenAPI 3.1', 'v3'),
  ];
}
