/** The routes of both doors, for each of the resources that they are handed. */
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { noSuchPath, StatusError } from '../runtime/errors.ts';
import { authenticated, authorizedByResource, type UnmatchedPaths } from '../http/access.ts';
import {
  inHeader,
  inPath,
  inQuery,
  type ResponseDescriptions,
  type ParameterDescription,
  type Handler,
  type RequestInfo,
  type Route,
} from '../http/route.ts';
import { count, text, type Schema } from '../http/schema.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { ApisHandlers } from './apis-handler.ts';
import type { Catalogue, CatalogueEntry } from '../cluster/catalogue/catalogue.ts';
import { componentResources, componentRoutes, nearComponents } from './components.ts';
import { discoveryRoutes, groupVersionsOf, type ApiGroupVersion } from '../apimachinery/api-groups.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import {
  kapisListParameters,
  labelSelector,
  listParameters,
  nameParameter,
  objectParameters,
  pretty,
  timeout,
  watchParameters,
  anyListSchema,
  anyObjectSchema,
  schemasOf,
} from '../apimachinery/list/parameters.ts';
import { judge, kapisHandlers, type KapisHandlers } from './kapis-handler.ts';
import { passedWatches, readThroughHandlers } from './read-through.ts';
import type { ApiResource, Kind, Resource } from '../cluster/catalogue/resource.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import { eventStream } from '../apimachinery/watch/response.ts';
import { Lanes } from '../apimachinery/watch/lanes.ts';

export interface KapisDeps {
  readonly authorizer: Authorizer;
  /** Those that are always at hand. */
  readonly resources: readonly Resource<unknown>[];
  /** For all that the cluster serves beside them. */
  readonly every?: {
    readonly catalogue: Pick<Catalogue, 'find' | 'use' | 'apiResources' | 'listMemory'>;
    readonly granted: ReadAccess['granted'];
    readonly client: Pick<KubeClient, 'stream'>;
    readonly kinds: readonly Kind<unknown>[];
    /** The release's. */
    readonly namespace: string;
  };
  /** Groups that others serve and that discovery names too. */
  readonly otherGroups?: readonly ApiGroupVersion[];
}

const lastEventIDHeader = inHeader('Last-Event-ID', 'Of a watch by server-sent events: go on behind this event');

/** What is too old to go on from, and options that do not go together. */
const refusals = [410, 422];
/** What its server does not offer, and answers of it that make no sense. */
const refusalsOfAny = [405, 502, ...refusals];

/** What is read, or what changes. */
const watched = (schema: Schema): ResponseDescriptions => ({
  200: {
    description: 'OK. With watch=true each line is an event, {"type": …, "object": …}, until the watch ends',
    content: { 'application/json': schema, [eventStream]: text },
  },
});

/** Those that some kinds have, each saying which. */
function kindParameters(kinds: readonly Kind<unknown>[]): readonly ParameterDescription[] {
  const all = kinds.flatMap(({ resource, statuses, filters, selectedBy = {} }) => [
    ...(statuses.length === 0 ? [] : [{ name: 'status', what: `of ${resource}: ${statuses.join(', ')}` }]),
    ...Object.entries({ ...filters, ...selectedBy }).map(([name, { description }]) => ({
      name,
      what: `of ${resource}: ${description}`,
    })),
  ]);
  return [...Map.groupBy(all, ({ name }) => name)].map(([name, those]) =>
    inQuery(name, those.map(({ what }) => what).join('; ')),
  );
}

const isEvery = ({ group, version }: ApiGroupVersion): boolean =>
  group === readingGroup.group && version === readingGroup.version;

const noAccess: ReadAccess['granted'] = { of: () => [], hasSynced: () => true };

/** The same answer for as long as the question is the same. */
function lastOnly<A, B>(make: (of: A) => B): (of: A) => B {
  let last: { readonly of: A; readonly made: B } | undefined;
  return (of) => {
    if (last?.of !== of) last = { of, made: make(of) };
    return last.made;
  };
}

export const unmatchedKapis: UnmatchedPaths = { paths: /^\/kapis\//, access: authenticated };
export const unmatchedApis: UnmatchedPaths = { paths: /^\/apis\//, access: authorizedByResource };

/** For the gateway: discovery and every resource below /kapis. */
export function kapisRoutes({ authorizer, resources, every, otherGroups = [] }: KapisDeps): Route[] {
  const definitions = resources.map(({ definition }) => definition);
  const own = groupVersionsOf(definitions);
  const always = [...(own.find(isEvery)?.resources ?? []), ...componentResources];
  /** Another array when they are others. */
  const named = lastOnly((found: readonly ApiResource[]) => {
    const names = new Set(found.map(({ name }) => name));
    return [...found, ...always.filter(({ name }) => !names.has(name))];
  });
  const groupVersions =
    every === undefined
      ? own
      : [
          {
            ...readingGroup,
            get resources() {
              return named(every.catalogue.apiResources);
            },
          },
          ...own.filter((one) => !isEvery(one)),
        ];
  const access: ReadAccess = {
    authorizer,
    granted: every?.granted ?? noAccess,
    ...(every === undefined ? {} : { catalogue: every.catalogue }),
  };
  const lanes = new Lanes();
  return [
    ...discoveryRoutes('/kapis', [...groupVersions, ...otherGroups]),
    ...resources.flatMap((resource): Route[] => {
      const { definition } = resource;
      const { kind, served } = definition;
      const path = `/kapis/${served.group}/${served.version}/${served.resource}`;
      const handlers = kapisHandlers(resource, access, lanes);
      const schemas = schemasOf(definition);
      const list = listParameters(definition);
      const handler =
        (what: keyof KapisHandlers): Handler =>
        async (...request) =>
          handlers[what](await judge(access, definition, ...request), ...request);
      return [
        {
          method: 'get',
          path,
          summary: `List or watch objects of kind ${kind}`,
          access: authenticated,
          parameters: [...list, lastEventIDHeader],
          answers: watched(schemas.list),
          refusals,
          hot: true,
          handler: handler('collection'),
        },
        {
          method: 'get',
          path: `${path}/:name`,
          summary: `Read the ${kind}`,
          access: authenticated,
          parameters: [nameParameter, ...objectParameters(list), lastEventIDHeader],
          answers: watched(schemas.object),
          refusals,
          hot: true,
          handler: handler('object'),
        },
      ];
    }),
    ...(every === undefined
      ? []
      : [...componentRoutes({ authorizer, ...every }), ...everyRoutes(every, access, lanes)]),
  ];
}

/** Throws 404 for a path on which such a resource is not, 405 for what its server does not offer. */
function checkPath({ definition, discovered }: CatalogueEntry, info: RequestInfo, what: string): void {
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

/** What is remembered of a key, made if there is nothing. */
function remember<K extends object>(all: WeakMap<K, KapisHandlers>, key: K, make: () => KapisHandlers): KapisHandlers {
  let handlers = all.get(key);
  if (handlers === undefined) all.set(key, (handlers = make()));
  return handlers;
}

/** Returns the handlers of every resource of the cluster, by its name in the path. */
function everyHandler(
  { catalogue, client }: Pick<NonNullable<KapisDeps['every']>, 'catalogue' | 'client'>,
  access: ReadAccess,
  lanes: Lanes,
): (what: keyof KapisHandlers) => Handler {
  const { listMemory: memory } = catalogue;
  const watches = passedWatches();
  const cached = new WeakMap<Resource<unknown>, KapisHandlers>();
  const uncached = new WeakMap<CatalogueEntry, KapisHandlers>();
  return (what) =>
    async (...request) => {
      const [req, res, { info, signal }] = request;
      // Such as …/namespaces/{name}/status, and the old form of a watch.
      if (info.subresource !== '' || info.resource !== req.params['resources']) throw noSuchPath();
      const entry = await catalogue.find(info.resource, signal).catch((error: unknown) => {
        const near = error instanceof StatusError && error.code === 404 ? nearComponents(info.resource) : undefined;
        throw near ?? error;
      });
      checkPath(entry, info, what);
      const { definition } = entry;
      // Who may not read it does not make us copy it.
      const judged = await judge(access, definition, ...request);
      const use = await catalogue.use(entry);
      if (use === undefined) {
        const make = () => readThroughHandlers(definition, { client, access, memory, watches });
        return remember(uncached, entry, make)[what](judged, ...request);
      }
      const { resource } = use;
      const release = (): void => use.release();
      try {
        await remember(cached, resource, () => kapisHandlers(resource, access, lanes))[what](judged, ...request);
      } catch (error) {
        release();
        throw error;
      }
      // A watch goes on.
      if (res.writableEnded || res.closed) release();
      else res.once('close', release);
    };
}

function everyRoutes(every: NonNullable<KapisDeps['every']>, access: ReadAccess, lanes: Lanes): Route[] {
  const base = `/kapis/${readingGroup.group}/${readingGroup.version}`;
  const handler = everyHandler(every, access, lanes);
  const resourcesParameter = inPath('resources', 'The plural, or as in deployments.apps and deployments.v1.apps');
  const namespaceParameter = inPath('namespace', 'The namespace');
  const parameters = kapisListParameters(kindParameters(every.kinds));
  const list = [...parameters, lastEventIDHeader];
  const get = [nameParameter, ...objectParameters(parameters), lastEventIDHeader];
  return [
    {
      method: 'get',
      path: `${base}/:resources`,
      summary: 'List or watch objects of any resource that the cluster serves',
      access: authenticated,
      parameters: [resourcesParameter, ...list],
      answers: watched(anyListSchema),
      refusals: refusalsOfAny,
      handler: handler('collection'),
    },
    {
      method: 'get',
      path: `${base}/:resources/:name`,
      summary: 'Read an object at cluster scope',
      access: authenticated,
      parameters: [resourcesParameter, ...get],
      answers: watched(anyObjectSchema),
      refusals: refusalsOfAny,
      handler: handler('object'),
    },
    {
      method: 'get',
      path: `${base}/namespaces/:namespace/:resources`,
      summary: 'List or watch objects of a namespace',
      access: authenticated,
      parameters: [namespaceParameter, resourcesParameter, ...list],
      answers: watched(anyListSchema),
      refusals: refusalsOfAny,
      handler: handler('collection'),
    },
    {
      method: 'get',
      path: `${base}/namespaces/:namespace/:resources/:name`,
      summary: 'Read an object of a namespace',
      access: authenticated,
      parameters: [namespaceParameter, resourcesParameter, ...get],
      answers: watched(anyObjectSchema),
      refusals: refusalsOfAny,
      handler: handler('object'),
    },
  ];
}

const apisListParameters: readonly ParameterDescription[] = [
  labelSelector,
  inQuery('fieldSelector', 'Kubernetes field selector of at most 32 terms'),
  inQuery('limit', 'Items of a chunk', count),
  inQuery('continue', 'metadata.continue of the chunk before'),
  ...watchParameters,
  pretty,
  timeout,
];

/** For the aggregated face: discovery and every resource below /apis, with the old paths of a watch. */
export function apisRoutes({ authorizer, resources, otherGroups = [] }: KapisDeps): Route[] {
  const definitions = resources.map(({ definition }) => definition);
  return [
    ...discoveryRoutes('/apis', [...groupVersionsOf(definitions), ...otherGroups]),
    ...resources.flatMap((resource) => {
      const { kind, served } = resource.definition;
      const base = `/apis/${served.group}/${served.version}`;
      const { collection, object } = new ApisHandlers(resource, authorizer);
      return [base, `${base}/watch`].flatMap((parent): Route[] => [
        {
          method: 'get',
          path: `${parent}/${served.resource}`,
          summary: parent === base ? `List or watch objects of kind ${kind}` : `Watch objects of kind ${kind}`,
          access: authorizedByResource,
          parameters: apisListParameters,
          hot: true,
          handler: collection,
        },
        {
          method: 'get',
          path: `${parent}/${served.resource}/:name`,
          summary: parent === base ? `Read the ${kind}` : `Watch the ${kind}`,
          access: authorizedByResource,
          parameters: [nameParameter, inQuery('resourceVersion', 'How old the answer may be'), pretty, timeout],
          hot: true,
          handler: object,
        },
      ]);
    }),
  ];
}
