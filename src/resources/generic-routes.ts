/** Serves every resource of the cluster by its name in the path. */
import { noSuchPath, pathNotFound, StatusError } from '../runtime/errors.ts';
import type { Slots } from '../runtime/slots.ts';
import type { RequestContext, RequestInfo, Route } from '../http/route.ts';
import { described, text } from '../http/schema.ts';
import type { Shape } from '../http/request/parameters.ts';
import { warnOfFields } from '../apimachinery/list/field-warnings.ts';
import { parametersWith } from '../apimachinery/list/kapis-parameters.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import type { Lanes } from '../apimachinery/watch/lanes.ts';
import type { Catalogue, CatalogueEntry } from '../cluster/catalogue/catalogue.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import type { Kind } from '../cluster/catalogue/resource.ts';
import type { FieldSchemas } from '../cluster/field-schemas.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { componentsPathError } from './components.ts';
import { CachedReads } from './cached-reads.ts';
import {
  authorizeRead,
  writePath,
  type AuthenticatedRequest,
  type ReadGrant,
  type ReadHandlers,
  type ReadRequest,
} from './read-request.ts';
import { anySchemas, readRoutes } from './read-routes.ts';
import { forwardedWatchSlots, UncachedReads } from './uncached-reads.ts';

export interface GenericParts {
  readonly catalogue: Pick<Catalogue, 'find' | 'acquire' | 'apiResources' | 'listMemory'>;
  readonly client: Pick<KubeClient, 'stream'>;
  readonly fieldSchemas: FieldSchemas;
  readonly kinds: readonly Kind<unknown>[];
}

/** Describes the parameters that only some kinds have. */
function ownParameters(kinds: readonly Kind<unknown>[]): Shape {
  const all = kinds.flatMap(({ resource, statuses, filters, selectedBy = {} }) => [
    ...(statuses.length === 0 ? [] : [{ name: 'status', what: `\`${resource}\`: ${statuses.join(', ')}` }]),
    ...Object.entries({ ...filters, ...selectedBy }).map(([name, { description }]) => ({
      name,
      what: `\`${resource}\`: ${description}`,
    })),
  ]);
  const byName = [...Map.groupBy(all, ({ name }) => name)];
  return Object.fromEntries(
    byName.map(([name, parameters]) => [
      name,
      described(parameters.map(({ what }) => what).join('; '), text.optional()),
    ]),
  );
}

/** Throws 404 if the path does not match the scope of the resource, and 405 if its server does not support the verb. */
function checkPath({ definition, discovered }: CatalogueEntry, info: RequestInfo, what: keyof ReadHandlers): void {
  const { namespaced } = definition;
  const { namespace, resource, name, verb } = info;
  const object = what === 'object' ? '/{name}' : '';
  // A right in a namespace covers the Namespace object of that name (requestinfo.go), but no other object at cluster
  // scope.
  const isItself = resource === 'namespaces' && what === 'object' && name === namespace;
  if (!namespaced && namespace !== '' && !isItself)
    throw noSuchPath(`${resource} are not namespaced: use …/${resource}${object}`);
  if (namespaced && namespace === '' && what === 'object')
    throw noSuchPath(`${resource} are namespaced: use …/namespaces/{namespace}/${resource}/{name}`);
  if (!discovered.verbs.includes(verb))
    throw new StatusError('MethodNotAllowed', 405, `the cluster does not support ${verb} for ${resource}`, {
      headers: { Allow: '' },
    });
}

/** Maximum milliseconds that an error response waits for discovery. */
const maxHintWait = 1_000;

interface GenericGrant {
  readonly entry: CatalogueEntry;
  readonly granted: ReadGrant;
}

class GenericReads {
  readonly #parts: GenericParts;
  readonly #access: ReadAccess;
  readonly #lanes: Lanes;
  readonly #watches: Slots = forwardedWatchSlots();
  /** Handlers by the resource or catalogue entry that they read. */
  readonly #handlers = new WeakMap<object, ReadHandlers>();

  constructor(parts: GenericParts, access: ReadAccess, lanes: Lanes) {
    this.#parts = parts;
    this.#access = access;
    this.#lanes = lanes;
  }

  /** Authorizes a request before `serve` starts to cache its resource. */
  async authorize(what: keyof ReadHandlers, request: AuthenticatedRequest): Promise<GenericGrant> {
    const { info, signal } = request.context;
    // Rejects paths such as …/namespaces/{name}/status, and the deprecated form of watches.
    if (info.subresource !== '') throw pathNotFound('; subresources are served only at /api and /apis');
    if (info.resource !== request.req.params['resources']) throw pathNotFound('; use watch=true, not /watch/');
    const entry = await this.#parts.catalogue.find(info.resource, signal).catch((error: unknown) => {
      const near = error instanceof StatusError && error.code === 404 ? componentsPathError(info.resource) : undefined;
      throw near ?? error;
    });
    checkPath(entry, info, what);
    return { entry, granted: await authorizeRead(this.#access, entry.definition, request) };
  }

  /**
   * Returns the path of kube-apiserver that accepts the method. Never throws: without a path, the error only names the
   * allowed methods.
   */
  async writtenAt({ info, signal }: RequestContext): Promise<string | undefined> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(maxHintWait)]);
    const entry = await this.#parts.catalogue.find(info.resource, limited).catch(() => undefined);
    return entry && writePath(entry.definition, info, entry.discovered.verbs);
  }

  async serve(what: keyof ReadHandlers, request: ReadRequest<GenericGrant>): Promise<void> {
    const { entry, granted } = request.granted;
    const read = { ...request, granted };
    const { res } = request;
    const { catalogue, client, fieldSchemas } = this.#parts;
    await warnOfFields(fieldSchemas, entry.definition, entry.discovered.revision, request);
    const handle = await catalogue.acquire(entry);
    if (handle === undefined) {
      const options = { client, access: this.#access, memory: catalogue.listMemory, watches: this.#watches };
      return this.#handlersFor(entry, () => new UncachedReads(entry.definition, options))[what](read);
    }
    const { resource } = handle;
    const release = (): void => handle.release();
    try {
      await this.#handlersFor(resource, () => new CachedReads(resource, this.#access, this.#lanes))[what](read);
    } catch (error) {
      release();
      throw error;
    }
    // The response to a watch is still open, so the cache is released when the response closes.
    if (res.writableEnded || res.closed) release();
    else res.once('close', release);
  }

  #handlersFor(key: object, make: () => ReadHandlers): ReadHandlers {
    let handlers = this.#handlers.get(key);
    if (handlers === undefined) this.#handlers.set(key, (handlers = make()));
    return handlers;
  }
}

export function genericRoutes(parts: GenericParts, access: ReadAccess, lanes: Lanes): Route[] {
  const base = `/kapis/${readingGroup.group}/${readingGroup.version}`;
  const reads = new GenericReads(parts, access, lanes);
  const { list, watch } = parametersWith(ownParameters(parts.kinds));
  const resources = 'Plural name of the resource, such as `deployments`, `deployments.apps` or `deployments.v1.apps`';
  const common = {
    list: list.descriptions,
    watch: watch.descriptions,
    schemas: anySchemas,
    // 405 is for verbs that the server of the resource does not support, and 502 for invalid responses of that server.
    errors: [405, 502],
    authorize: reads.authorize.bind(reads),
    serve: reads.serve.bind(reads),
    writtenAt: reads.writtenAt.bind(reads),
  };
  return [
    ...readRoutes({
      ...common,
      path: `${base}/:resources`,
      pathParameters: { resources },
      summaries: {
        collection: 'List or watch objects of a resource',
        object: 'Get an object at cluster scope',
      },
    }),
    ...readRoutes({
      ...common,
      path: `${base}/namespaces/:namespace/:resources`,
      pathParameters: { namespace: 'Name of the namespace', resources },
      summaries: { collection: 'List or watch objects in a namespace', object: 'Get an object in a namespace' },
    }),
  ];
}
