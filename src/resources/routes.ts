/** Routes of resources at /kapis and /apis. */
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { cacheLast } from '../runtime/cache-last.ts';
import { authorizedByResource } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { parsedByHandler } from '../http/request/parameters.ts';
import type { RequestContext, Route } from '../http/route.ts';
import { discoveryRoutes, groupVersionsOf, type ApiGroupVersion } from '../apimachinery/api-groups.ts';
import { apisCollectionParameters, apisObjectParameters } from '../apimachinery/list/apis-parameters.ts';
import { warnOfFields } from '../apimachinery/list/field-warnings.ts';
import { queriesOf } from '../apimachinery/list/query.ts';
import { assertUnderlyingAllowed } from '../apimachinery/reading.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import { Lanes } from '../apimachinery/watch/lanes.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import type { FieldSchemas } from '../cluster/field-schemas.ts';
import type { ApiResource, Resource } from '../cluster/catalogue/resource.ts';
import { ApisHandlers } from './apis-handler.ts';
import { componentResources, componentRoutes } from './components.ts';
import { genericRoutes, type GenericParts } from './generic-routes.ts';
import { CachedReads } from './cached-reads.ts';
import { authorizeRead, writePath } from './read-request.ts';
import { readRoutes, schemasOf } from './read-routes.ts';

export interface ApisDeps {
  readonly authorizer: Authorizer;
  /** Resources that are always cached. */
  readonly resources: readonly Resource<unknown>[];
  /** API groups of other routes, which discovery also lists. */
  readonly otherGroups?: readonly ApiGroupVersion[];
}

/** Dependencies of the routes below /kapis, which serve all resources of the cluster in addition to `resources`. */
export interface KapisDeps extends ApisDeps, GenericParts {
  readonly granted: ReadAccess['granted'];
  readonly namespaceAccess: ReadAccess['namespaceAccess'];
  /** Namespace of the release. */
  readonly namespace: string;
}

const isReadingGroup = ({ group, version }: ApiGroupVersion): boolean =>
  group === readingGroup.group && version === readingGroup.version;

/**
 * Returns the groups of the resources. The group resources.platform.io also contains the resources of the cluster and
 * the components.
 */
function groupsOf({ resources, catalogue }: KapisDeps): readonly ApiGroupVersion[] {
  const own = groupVersionsOf(resources.map(({ definition }) => definition));
  const always = [...(own.find(isReadingGroup)?.resources ?? []), ...componentResources];
  /**
   * Adds the resources that the group always has to the resources of the cluster. `apiResources` returns a new array
   * after each change.
   */
  const named = cacheLast((found: readonly ApiResource[]) => {
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

function resourceRoutes(resource: Resource<unknown>, access: ReadAccess, lanes: Lanes, schemas: FieldSchemas): Route[] {
  const { definition } = resource;
  const { kind, served } = definition;
  const reads = new CachedReads(resource, access, lanes);
  const { list, watch } = queriesOf(definition);
  return readRoutes({
    path: `/kapis/${served.group}/${served.version}/${served.resource}`,
    summaries: { collection: `List or watch objects of kind ${kind}`, object: `Get an object of kind ${kind}` },
    list: list.descriptions,
    watch: watch.descriptions,
    schemas: schemasOf(definition),
    authorize: (_, request) => authorizeRead(access, definition, request),
    async serve(what, request) {
      await warnOfFields(schemas, definition, '', request);
      await reads[what](request);
    },
    writtenAt: ({ info }) => writePath(definition, info),
  });
}

/** Returns the routes of the gateway: discovery and every resource below /kapis. */
export function kapisRoutes(deps: KapisDeps): Route[] {
  const { authorizer, granted, namespaceAccess, catalogue, resources, fieldSchemas, otherGroups = [] } = deps;
  const access: ReadAccess = { authorizer, namespaceAccess, granted, catalogue };
  const lanes = new Lanes();
  return [
    ...discoveryRoutes('/kapis', [...groupsOf(deps), ...otherGroups]),
    ...resources.flatMap((resource) => resourceRoutes(resource, access, lanes, fieldSchemas)),
    ...componentRoutes(deps),
    ...genericRoutes(deps, access, lanes),
  ];
}

/**
 * Returns the routes of the aggregated API: discovery and every resource below /apis, with the deprecated paths of
 * watches.
 */
export function apisRoutes({ authorizer, resources, otherGroups = [] }: ApisDeps): Route[] {
  return [
    ...discoveryRoutes('/apis', [...groupVersionsOf(resources.map(({ definition }) => definition)), ...otherGroups]),
    ...resources.flatMap((resource) => aggregatedRoutes(resource, authorizer)),
  ];
}

function aggregatedRoutes(resource: Resource<unknown>, authorizer: Authorizer): Route[] {
  const { definition } = resource;
  const { kind, served } = definition;
  const base = `/apis/${served.group}/${served.version}`;
  const writtenAt = ({ info }: RequestContext): string | undefined => writePath(definition, info);
  const handlers = new ApisHandlers(resource, authorizer);
  return [base, `${base}/watch`].flatMap((parent) => {
    const verb = (what: string): string => (parent === base ? what : 'Watch');
    return [
      defineRoute({
        method: 'get',
        path: `${parent}/${served.resource}`,
        summary: `${verb('List or watch')} objects of kind ${kind}`,
        description: 'Parameters and rights are the same as in kube-apiserver.',
        access: authorizedByResource,
        query: parsedByHandler(apisCollectionParameters.descriptions),
        responses: {},
        writtenAt,
        authorize: ({ context }) => assertUnderlyingAllowed(authorizer, context, resource),
        handler: (request) => handlers.collection(request),
      }),
      defineRoute({
        method: 'get',
        path: `${parent}/${served.resource}/:name`,
        summary: `${verb('Get')} an object of kind ${kind}`,
        description: 'Parameters and rights are the same as in kube-apiserver.',
        access: authorizedByResource,
        pathParameters: { name: 'Name of the object' },
        query: parsedByHandler((parent === base ? apisObjectParameters : apisCollectionParameters).descriptions),
        responses: {},
        writtenAt,
        authorize: ({ context }) => assertUnderlyingAllowed(authorizer, context, resource),
        handler: (request) => handlers.object(request),
      }),
    ];
  });
}
