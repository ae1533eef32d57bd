/** Every resource that the cluster serves, by its name in the path. */
import { noSuchPath, StatusError } from '../runtime/errors.ts';
import type { Slots } from '../runtime/slots.ts';
import type { RequestInfo, Route } from '../http/route.ts';
import { described, text } from '../http/schema.ts';
import type { Shape } from '../http/request/parameters.ts';
import { parametersWith } from '../apimachinery/list/kapis-parameters.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import type { Lanes } from '../apimachinery/watch/lanes.ts';
import type { Catalogue, CatalogueEntry } from '../cluster/catalogue/catalogue.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import type { Kind } from '../cluster/catalogue/resource.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { nearComponents } from './components.ts';
import { CachedReads } from './cached-reads.ts';
import {
  authorizeRead,
  type AuthenticatedRequest,
  type ReadGrant,
  type ReadHandlers,
  type ReadRequest,
} from './read-request.ts';
import { anySchemas, readRoutes } from './read-routes.ts';
import { passedWatches, UncachedReads } from './uncached-reads.ts';

export interface GenericParts {
  readonly catalogue: Pick<Catalogue, 'find' | 'use' | 'apiResources' | 'listMemory'>;
  readonly client: Pick<KubeClient, 'stream'>;
  readonly kinds: readonly Kind<unknown>[];
}

/** The parameters that only some kinds have, each with the kinds that have it. */
function ownParameters(kinds: readonly Kind<unknown>[]): Shape {
  const all = kinds.flatMap(({ resource, statuses, filters, selectedBy = {} }) => [
    ...(statuses.length === 0 ? [] : [{ name: 'status', what: `of ${resource}: ${statuses.join(', ')}` }]),
    ...Object.entries({ ...filters, ...selectedBy }).map(([name, { description }]) => ({
      name,
      what: `of ${resource}: ${description}`,
    })),
  ]);
  const byName = [...Map.groupBy(all, ({ name }) => name)];
  return Object.fromEntries(
    byName.map(([name, those]) => [name, described(those.map(({ what }) => what).join('; '), text.optional())]),
  );
}

/** Throws 404 for a path on which such a resource is not, 405 for what its server does not offer. */
function checkPath({ definition, discovered }: CatalogueEntry, info: RequestInfo, what: keyof ReadHandlers): void {
  const { namespaced } = definition;
  const { namespace, resource, name, verb } = info;
  const object = what === 'object' ? '/{name}' : '';
  // A right in a namespace covers the Namespace of that name (requestinfo.go), and no other object at cluster scope.
  const isItself = resource === 'namespaces' && what === 'object' && name === namespace;
  if (!namespaced && namespace !== '' && !isItself)
    throw noSuchPath(`${resource} are not in namespaces: their path is …/${resource}${object}`);
  if (namespaced && namespace === '' && what === 'object')
    throw noSuchPath(`${resource} are in namespaces: their path is …/namespaces/{namespace}/${resource}/{name}`);
  if (!discovered.verbs.includes(verb))
    throw new StatusError('MethodNotAllowed', 405, `the cluster does not offer to ${verb} ${resource}`, {
      headers: { Allow: '' },
    });
}

interface GenericGrant {
  readonly entry: CatalogueEntry;
  readonly granted: ReadGrant;
}

class GenericReads {
  readonly #parts: GenericParts;
  readonly #access: ReadAccess;
  readonly #lanes: Lanes;
  readonly #watches: Slots = passedWatches();
  /** By what they read. */
  readonly #handlers = new WeakMap<object, ReadHandlers>();

  constructor(parts: GenericParts, access: ReadAccess, lanes: Lanes) {
    this.#parts = parts;
    this.#access = access;
    this.#lanes = lanes;
  }

  /** Callers who are not allowed to read a resource do not make us cache it. */
  async authorize(what: keyof ReadHandlers, request: AuthenticatedRequest): Promise<GenericGrant> {
    const { info, signal } = request.context;
    // Such as …/namespaces/{name}/status, and the old form of a watch.
    if (info.subresource !== '' || info.resource !== request.req.params['resources']) throw noSuchPath();
    const entry = await this.#parts.catalogue.find(info.resource, signal).catch((error: unknown) => {
      const near = error instanceof StatusError && error.code === 404 ? nearComponents(info.resource) : undefined;
      throw near ?? error;
    });
    checkPath(entry, info, what);
    return { entry, granted: await authorizeRead(this.#access, entry.definition, request) };
  }

  async serve(what: keyof ReadHandlers, request: ReadRequest<GenericGrant>): Promise<void> {
    const { entry, granted } = request.granted;
    const read = { ...request, granted };
    const { res } = request;
    const { catalogue, client } = this.#parts;
    const use = await catalogue.use(entry);
    if (use === undefined) {
      const options = { client, access: this.#access, memory: catalogue.listMemory, watches: this.#watches };
      return this.#remember(entry, () => new UncachedReads(entry.definition, options))[what](read);
    }
    const { resource } = use;
    const release = (): void => use.release();
    try {
      await this.#remember(resource, () => new CachedReads(resource, this.#access, this.#lanes))[what](read);
    } catch (error) {
      release();
      throw error;
    }
    // A watch goes on.
    if (res.writableEnded || res.closed) release();
    else res.once('close', release);
  }

  #remember(key: object, make: () => ReadHandlers): ReadHandlers {
    let handlers = this.#handlers.get(key);
    if (handlers === undefined) this.#handlers.set(key, (handlers = make()));
    return handlers;
  }
}

export function genericRoutes(parts: GenericParts, access: ReadAccess, lanes: Lanes): Route[] {
  const base = `/kapis/${readingGroup.group}/${readingGroup.version}`;
  const reads = new GenericReads(parts, access, lanes);
  const { list, watch } = parametersWith(ownParameters(parts.kinds));
  const resources = 'The plural, or as in deployments.apps and deployments.v1.apps';
  const common = {
    list: list.descriptions,
    watch: watch.descriptions,
    schemas: anySchemas,
    // What its server does not offer, and responses of it that are invalid.
    errors: [405, 502],
    authorize: reads.authorize.bind(reads),
    serve: reads.serve.bind(reads),
  };
  return [
    ...readRoutes({
      ...common,
      path: `${base}/:resources`,
      pathParameters: { resources },
      summaries: {
        collection: 'List or watch objects of any resource',
        object: 'Get an object at cluster scope',
      },
    }),
    ...readRoutes({
      ...common,
      path: `${base}/namespaces/:namespace/:resources`,
      pathParameters: { namespace: 'The namespace', resources },
      summaries: { collection: 'List or watch objects in a namespace', object: 'Get an object in a namespace' },
    }),
  ];
}
