/**
 * Discovery documents, by which clients find API groups and resources. These documents have a legacy form
 * (metav1.APIGroupList, APIGroup, APIResourceList) and an aggregated form (apidiscovery.k8s.io, k8s.io/apiserver
 * pkg/endpoints/discovery/aggregated).
 */
import { createHash } from 'node:crypto';
import { isKnown, negotiate } from '../http/request/negotiate.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute, type RouteRequest } from '../http/define-route.ts';
import { json as jsonResponse, type ResponseDescriptions, type Route } from '../http/route.ts';
import { typeMeta } from '../http/meta-schemas.ts';
import { flag, list, named, object, text, type TypeOf } from '../http/schema.ts';
import { writeJson } from '../http/response/write.ts';
import type { ApiResource, ResourceDefinition } from '../cluster/catalogue/resource.ts';

export interface ApiGroupVersion {
  readonly group: string;
  readonly version: string;
  /** Resources of the group version. A change of the resources replaces the array. */
  readonly resources: readonly ApiResource[];
}

/** Returns the group versions of these resources. */
export function groupVersionsOf(definitions: readonly ResourceDefinition<unknown>[]): readonly ApiGroupVersion[] {
  const groups = Map.groupBy(definitions, ({ served: { group, version } }) => `${group}/${version}`);
  return [...groups.values()].map((members) => {
    const { group, version } = (members[0] as ResourceDefinition<unknown>).served;
    return { group, version, resources: members.map(apiResource) };
  });
}

const apiResource = ({
  served,
  singular,
  namespaced,
  kind,
  shortNames,
  categories,
}: ResourceDefinition<unknown>): ApiResource => ({
  name: served.resource,
  singularName: singular,
  namespaced,
  kind,
  verbs: ['get', 'list', 'watch'],
  ...(shortNames.length === 0 ? {} : { shortNames }),
  ...(categories === undefined ? {} : { categories }),
});

const versionSchema = named('GroupVersion', object({ groupVersion: text, version: text }));
const inGroup = { name: text, versions: list(versionSchema), preferredVersion: versionSchema };
const groupSchema = named('APIGroupListItem', object(inGroup));

const apiGroupSchema = named('APIGroup', object({ ...typeMeta('APIGroup', 'v1'), ...inGroup }));
const apiGroupListSchema = named(
  'APIGroupList',
  object({ ...typeMeta('APIGroupList', 'v1'), groups: list(groupSchema) }),
);
const apiResourceListSchema = named(
  'APIResourceList',
  object({
    ...typeMeta('APIResourceList', 'v1'),
    groupVersion: text,
    resources: list(
      named(
        'APIResource',
        object(
          { name: text, singularName: text, namespaced: flag, kind: text, verbs: list(text) },
          { group: text, version: text, shortNames: list(text), categories: list(text) },
        ),
      ),
    ),
  }),
);

const versionOf = ({ group, version }: ApiGroupVersion): { groupVersion: string; version: string } => ({
  groupVersion: `${group}/${version}`,
  version,
});

/** Returns the versions of one group. The first version is preferred. */
function apiGroup(members: readonly [ApiGroupVersion, ...ApiGroupVersion[]]): TypeOf<typeof groupSchema> {
  const versions = members.map(versionOf);
  return { name: members[0].group, versions, preferredVersion: versionOf(members[0]) };
}

type AggregatedVersion = 'v2' | 'v2beta1';

/** Returns an APIGroupDiscoveryList of apidiscovery.k8s.io. */
function aggregated(version: AggregatedVersion, groups: readonly (readonly ApiGroupVersion[])[]): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map((members) => ({
      metadata: { name: members[0]?.group, creationTimestamp: null },
      versions: members.map(({ group, version: served, resources }) => ({
        version: served,
        resources: resources.map(({ name, kind, namespaced, singularName, shortNames, categories, verbs }) => ({
          resource: name,
          responseKind: { group, version: served, kind },
          scope: namespaced ? 'Namespaced' : 'Cluster',
          singularResource: singularName,
          verbs,
          ...(shortNames === undefined ? {} : { shortNames }),
          ...(categories === undefined ? {} : { categories }),
        })),
        freshness: 'Current',
      })),
    })),
  };
}

const json = 'application/json';

type Serve = (request: Pick<RouteRequest<string, typeof authenticated>, 'req' | 'res'>) => Promise<void>;

/** Serves a document in the legacy form. */
const legacy =
  (document: () => object): Serve =>
  ({ req, res }) =>
    negotiate(req.headers.accept, [json], (_, { as }) =>
      as === undefined || as === '' ? () => writeJson(req, res, document()) : undefined,
    )();

/**
 * Serves both forms. Clients request the aggregated form with parameters of the media type in Accept. The aggregated
 * form supports If-None-Match.
 */
function legacyOrAggregated(document: object, groups: readonly (readonly ApiGroupVersion[])[]): Serve {
  const make = (): Readonly<Record<string, { value: object; etag: string }>> =>
    Object.fromEntries(
      (['v2', 'v2beta1'] as const).map((version) => {
        const value = aggregated(version, groups);
        const body = Buffer.from(`${JSON.stringify(value)}\n`);
        return [version, { value, etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"` }];
      }),
    );
  let made: { readonly of: readonly unknown[]; readonly documents: ReturnType<typeof make> } | undefined;
  /** Returns the documents, rebuilt if resources were added or removed. */
  const current = (): ReturnType<typeof make> => {
    const of = groups.flat().map(({ resources }) => resources);
    if (made === undefined || of.some((resources, index) => resources !== made?.of[index]))
      made = { of, documents: make() };
    return made.documents;
  };
  return ({ req, res }) =>
    negotiate(req.headers.accept, [json], (_, { as = '', g, v = '' }) => {
      if (as === '') return () => writeJson(req, res, document, { headers: { Vary: 'Accept' } });
      const found = current()[v];
      if (as !== 'APIGroupDiscoveryList' || g !== 'apidiscovery.k8s.io' || found === undefined) return undefined;
      return async () => {
        const headers = { ETag: found.etag, Vary: 'Accept', 'Cache-Control': 'public' };
        if (isKnown(req.headers['if-none-match'], found.etag)) {
          res.writeHead(304, headers).end();
          return;
        }
        const contentType = `${json};g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`;
        await writeJson(req, res, found.value, { contentType, headers });
      };
    })();
}

const route = (
  path: string,
  texts: { readonly summary: string; readonly description: string },
  responses: ResponseDescriptions,
  handler: Serve,
): Route => defineRoute({ method: 'get', path, ...texts, access: authenticated, responses, handler });

/** Returns the discovery routes below /apis or /kapis. */
export function discoveryRoutes(prefix: '/apis' | '/kapis', groupVersions: readonly ApiGroupVersion[]): Route[] {
  const groups = [...Map.groupBy(groupVersions, ({ group }) => group).values()] as [
    ApiGroupVersion,
    ...ApiGroupVersion[],
  ][];
  const all: TypeOf<typeof apiGroupListSchema> = {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map(apiGroup),
  };
  return [
    route(
      prefix,
      {
        summary: 'List the API groups',
        description:
          'Returns the API groups and their versions in the same form as kube-apiserver. Available to all authenticated callers.',
      },
      jsonResponse(
        apiGroupListSchema,
        'The groups; an APIGroupDiscoveryList (apidiscovery.k8s.io, v2 or v2beta1) if `Accept` requests one',
      ),
      legacyOrAggregated(all, groups),
    ),
    ...groups.map((members) => {
      const document: TypeOf<typeof apiGroupSchema> = { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(members) };
      return route(
        `${prefix}/${members[0].group}`,
        {
          summary: 'Get an API group',
          description: 'Returns the versions of the group. Available to all authenticated callers.',
        },
        jsonResponse(apiGroupSchema, 'The group'),
        legacy(() => document),
      );
    }),
    ...groupVersions.map((one) => {
      const groupVersion = `${one.group}/${one.version}`;
      const document = (): TypeOf<typeof apiResourceListSchema> => ({
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion,
        resources: one.resources,
      });
      return route(
        `${prefix}/${groupVersion}`,
        {
          summary: 'List the resources of an API version',
          description: 'Returns the resources and their verbs. Available to all authenticated callers.',
        },
        jsonResponse(apiResourceListSchema, 'The resources'),
        legacy(document),
      );
    }),
  ];
}
