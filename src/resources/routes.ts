/** The routes of both faces, for each of the resources that they are given. */
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { authorizedByResource } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { parsedByHandler } from '../http/request/parameters.ts';
import type { Route } from '../http/route.ts';
import { discoveryRoutes, groupVersionsOf, type ApiGroupVersion } from '../apimachinery/api-groups.ts';
import { apisCollectionParameters, apisObjectParameters } from '../apimachinery/list/apis-parameters.ts';
import { queriesOf } from '../apimachinery/list/query.ts';
import { demandUnderlying } from '../apimachinery/reading.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import { Lanes } from '../apimachinery/watch/lanes.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import type { ApiResource, Resource } from '../cluster/catalogue/resource.ts';
import { ApisHandlers } from './apis-handler.ts';
import { componentResources, componentRoutes } from './components.ts';
import { genericRoutes, type GenericParts } from './generic-routes.ts';
import { CachedReads } from './cached-reads.ts';
import { authorizeRead } from './read-request.ts';
import { readRoutes, schemasOf } from './read-routes.ts';

export interface ApisDeps {
  readonly authorizer: Authorizer;
  /** Resources that are always cached. */
  readonly resources: readonly Resource<unknown>[];
  /** Groups that other routes serve and that discovery lists too. */
  readonly otherGroups?: readonly ApiGroupVersion[];
}

/** With all resources of the cluster beside `resources`. */
export interface KapisDeps extends ApisDeps, GenericParts {
  readonly granted: ReadAccess['granted'];
  /** Namespace of the release. */
  readonly namespace: string;
}

const isReadingGroup = ({ group, version }: ApiGroupVersion): boolean =>
  group === readingGroup.group && version === readingGroup.version;

/** The same result for as long as the argument is the same. */
function lastOnly<A, B>(make: (of: A) => B): (of: A) => B {
  let last: { readonly of: A; readonly made: B } | undefined;
  return (of) => {
    if (last?.of !== of) last = { of, made: make(of) };
    return last.made;
  };
}

/** Returns the groups of the resources. The reading group lists the resources of the cluster and the components too. */
function groupsOf({ resources, catalogue }: KapisDeps): readonly ApiGroupVersion[] {
  const own = groupVersionsOf(resources.map(({ definition }) => definition));
  const always = [...(own.find(isReadingGroup)?.resources ?? []), ...componentResources];
  /** Another array when they have changed. */
  const named = lastOnly((found: readonly ApiResource[]) => {
    const names = new Set(found.map(({ name }) => name));
    return [...found, ...always.filter(({ name }) => !names.has(name))];
  });
  const group = {
    ...readingGroup,
    get resources() {
      return named(catalogue.apiResources);
    },
  };
  return [group, ...own.filter((one) => !isReadingGroup(one))];
}

function resourceRoutes(resource: Resource<unknown>, access: ReadAccess, lanes: Lanes): Route[] {
  const { definition } = resource;
  const { kind, served } = definition;
  const reads = new CachedReads(resource, access, lanes);
  const { list, watch } = queriesOf(definition);
  return readRoutes({
    path: `/kapis/${served.group}/${served.version}/${served.resource}`,
    summaries: { collection: `List or watch objects of kind ${kind}`, object: `Read the ${kind}` },
    list: list.descriptions,
    watch: watch.descriptions,
    schemas: schemasOf(definition),
    hot: true,
    authorize: (_, request) => authorizeRead(access, definition, request),
    serve: (what, request) => reads[what](request),
  });
}

/** For the gateway: discovery and every resource below /kapis. */
export function kapisRoutes(deps: KapisDeps): Route[] {
  const { authorizer, granted, catalogue, resources, otherGroups = [] } = deps;
  const access: ReadAccess = { authorizer, granted, catalogue };
  const lanes = new Lanes();
  return [
    ...discoveryRoutes('/kapis', [...groupsOf(deps), ...otherGroups]),
    ...resources.flatMap((resource) => resourceRoutes(resource, access, lanes)),
    ...componentRoutes(deps),
    ...genericRoutes(deps, access, lanes),
  ];
}

/** For the aggregated face: discovery and every resource below /apis, with the old paths of a watch. */
export function apisRoutes({ authorizer, resources, otherGroups = [] }: ApisDeps): Route[] {
  return [
    ...discoveryRoutes('/apis', [...groupVersionsOf(resources.map(({ definition }) => definition)), ...otherGroups]),
    ...resources.flatMap((resource) => aggregatedRoutes(resource, authorizer)),
  ];
}

function aggregatedRoutes(resource: Resource<unknown>, authorizer: Authorizer): Route[] {
  const { kind, served } = resource.definition;
  const base = `/apis/${served.group}/${served.version}`;
  const handlers = new ApisHandlers(resource, authorizer);
  return [base, `${base}/watch`].flatMap((parent) => {
    const verb = (what: string): string => (parent === base ? what : 'Watch');
    return [
      defineRoute({
        method: 'get',
        path: `${parent}/${served.resource}`,
        summary: `${verb('List or watch')} objects of kind ${kind}`,
        description: 'kube-apiserver has the same parameters and rights.',
        access: authorizedByResource,
        query: parsedByHandler(apisCollectionParameters.descriptions),
        responses: {},
        hot: true,
        authorize: ({ context }) => demandUnderlying(authorizer, context, resource),
        handler: (request) => handlers.collection(request),
      }),
      defineRoute({
        method: 'get',
        path: `${parent}/${served.resource}/:name`,
        summary: `${verb('Read')} the ${kind}`,
        description: 'kube-apiserver has the same parameters and rights.',
        access: authorizedByResource,
        pathParameters: { name: 'The name' },
        query: parsedByHandler((parent === base ? apisObjectParameters : apisCollectionParameters).descriptions),
        responses: {},
        hot: true,
        authorize: ({ context }) => demandUnderlying(authorizer, context, resource),
        handler: (request) => handlers.object(request),
      }),
    ];
  });
}
