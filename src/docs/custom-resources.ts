/**
 * `/swagger/custom-resources.json` and `/swagger/custom-resources.v3.json`: the custom resources of the cluster in
 * Swagger 2.0 and OpenAPI 3.1, generated from their CustomResourceDefinitions. A request first reads the definitions
 * that have changed.
 */
import { serviceUnavailable } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { documentSchema, PreparedDocument } from '../http/response/prepared-document.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { Discovery } from '../cluster/discovery.ts';
import { Slice, type SignalSource } from '../runtime/slice.ts';
import type { Logger } from '../runtime/logger.ts';
import {
  describeDefinition,
  documentOf,
  type DefinitionFragments,
  type DocumentForm,
} from './openapi/custom-documents.ts';
import { withoutSchemas, type Definition } from './openapi/custom-resource.ts';
import { conditional } from './platform.ts';

export interface CustomResourcesOptions {
  readonly client: Pick<KubeClient, 'json'>;
  readonly discovery: Pick<Discovery, 'waitForSync' | 'resources'>;
  readonly log: Logger;
  /** Version of this server. */
  readonly version: string;
  readonly issuer: () => string;
}

interface CachedDefinition extends DefinitionFragments {
  readonly revision: string;
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** Maximum number of definitions that are read concurrently. */
const maxConcurrent = 8;
/** Maximum milliseconds to wait for cluster discovery, and for each definition. */
const readTimeout = 5_000;
/** Milliseconds before a failed read is retried. */
const retryInterval = 1_000;
/**
 * Maximum bytes of a document. Definitions beyond this limit are omitted, and the document states the number of omitted
 * definitions.
 */
const maxBytes = 64 * 1024 * 1024;

/** Builds the documents of the current definitions. */
class CustomResourceDocuments {
  readonly #options: CustomResourcesOptions;
  /** Fragments by name of the definition. */
  readonly #cached = new Map<string, CachedDefinition>();
  #built: { readonly key: string; readonly documents: Readonly<Record<DocumentForm, PreparedDocument>> } | undefined;
  #building: Promise<void> | undefined;
  #retryAfter = 0;

  constructor(options: CustomResourcesOptions) {
    this.#options = options;
  }

  /** Returns the document. A definition that cannot be read keeps its previous description. */
  async get(form: DocumentForm, { signal }: SignalSource): Promise<PreparedDocument> {
    const waiting = AbortSignal.any([signal, AbortSignal.timeout(readTimeout)]);
    await this.#options.discovery.waitForSync(waiting).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw serviceUnavailable('the resources of the cluster have not been discovered yet', 1, cause);
    });
    const isCurrent = this.#built?.key === this.#keyOf(this.#revisions());
    if (!isCurrent && (this.#built === undefined || Date.now() >= this.#retryAfter))
      await (this.#building ??= this.#build().finally(() => {
        this.#building = undefined;
      }));
    if (this.#built === undefined)
      throw serviceUnavailable('could not read the CustomResourceDefinitions of the cluster');
    return this.#built.documents[form];
  }

  /** Returns the revision of each definition by name. */
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

  async #build(): Promise<void> {
    const { log, version, issuer } = this.#options;
    const revisions = this.#revisions();
    for (const name of this.#cached.keys()) if (!revisions.has(name)) this.#cached.delete(name);
    const problem = await this.#readChanged(revisions);
    if (problem !== undefined) {
      this.#retryAfter = Date.now() + retryInterval;
      log.warn('could not read a CustomResourceDefinition', { error: problem });
    }
    const described = [...this.#cached].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
    const document = (form: DocumentForm): PreparedDocument =>
      new PreparedDocument(documentOf(form, described, { version, issuer: issuer(), maxBytes }));
    this.#built = {
      // The key '' matches no revisions, so a failed read is retried.
      key: problem === undefined ? this.#keyOf(revisions) : '',
      documents: { v2: document('v2'), v3: document('v3') },
    };
  }

  /** Reads the changed definitions. Returns an error if one of them could not be read. */
  async #readChanged(revisions: ReadonlyMap<string, string>): Promise<unknown> {
    const changed = [...revisions].filter(([name, revision]) => this.#cached.get(name)?.revision !== revision);
    const slice = new Slice();
    let problem: unknown;
    for (let at = 0; at < changed.length; at += maxConcurrent) {
      const results = await Promise.allSettled(
        changed.slice(at, at + maxConcurrent).map(([name, revision]) => this.#read(name, revision, slice)),
      );
      const failed = results.filter((one) => one.status === 'rejected');
      problem = failed[0]?.reason ?? problem;
      // If all reads of a batch fail, the other reads will probably fail too.
      if (failed.length === results.length) break;
    }
    return problem;
  }

  async #read(name: string, revision: string, slice: Slice): Promise<void> {
    const path = `${definitions}/${name}`;
    const definition = await this.#options.client.json<Definition>(path, { timeout: readTimeout });
    if (slice.isOver) await slice.next();
    this.#cached.set(name, { revision, ...this.#describe(name, definition) });
  }

  /** Omits the schemas if they cannot be written, for example because they are nested too deep. */
  #describe(name: string, definition: Definition): DefinitionFragments {
    try {
      return describeDefinition(definition);
    } catch (error) {
      this.#options.log.warn('could not describe the schema of a CustomResourceDefinition', { name, error });
      return describeDefinition(withoutSchemas(definition));
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
      description: `Describes the custom resources of the cluster, generated from its CustomResourceDefinitions. Available to all authenticated callers. ${conditional}`,
      access: authenticated,
      responses: json(documentSchema, 'The description'),
      handler: async ({ req, res, context }) => (await documents.get(form, context)).write(req, res, context),
    });
  return [
    route('/swagger/custom-resources.json', 'Swagger 2.0', 'v2'),
    route('/swagger/custom-resources.v3.json', 'OpenAPI 3.1', 'v3'),
  ];
}
