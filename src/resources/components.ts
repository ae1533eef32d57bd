/**
 * Components of the platform and their health. Components are the Deployments, StatefulSets and DaemonSets with the
 * platform's label in the release's namespace and kube-system, and the cluster's add-ons in kube-system. Callers see
 * only the kinds that they are allowed to list in each namespace.
 */
import { assertAllowed, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { noSuchPath, notFound, unauthorized, type StatusError } from '../runtime/errors.ts';
import { writeDocument } from '../http/response/pretty.ts';
import { authorizedByHandler } from '../http/access.ts';
import { defineRoute, type RouteRequest } from '../http/define-route.ts';
import { objectResponse, type RequestContext, type Route } from '../http/route.ts';
import { assertAcceptsObjects, objectTypeOf } from '../apimachinery/list/resource-responses.ts';
import type { TypeOf } from '../http/schema.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import type { StoredObject } from '../cluster/cache/stored-object.ts';
import type { Catalogue } from '../cluster/catalogue/catalogue.ts';
import {
  componentHealthSchema,
  componentListSchema,
  componentSchema,
  type PlatformComponent,
} from './component-schemas.ts';
import { decodeObject, readFromCache } from '../cluster/catalogue/read-cache.ts';
import { readingGroup } from '../cluster/catalogue/generic.ts';
import { commonParameters } from '../apimachinery/common-parameters.ts';
import { daemonCount } from './kinds/daemonsets.ts';
import type { NodeFields } from './kinds/nodes.ts';
import { scaled, type PodCount } from './kinds/replicas.ts';
import { selectorOf } from './kinds/services.ts';
import type { ApiResource } from '../cluster/catalogue/resource.ts';

export interface ComponentsDeps {
  readonly authorizer: Authorizer;
  readonly catalogue: Pick<Catalogue, 'find' | 'acquire'>;
  /** Namespace of the release. */
  readonly namespace: string;
}

const system = 'kube-system';
const partOf = 'app.kubernetes.io/part-of';
const platform = 'platform';
/** Label of the add-ons of the cluster. */
const systemLabel = 'k8s-app';

const workloads: readonly { readonly name: string; readonly count: (object: KubeObject) => PodCount }[] = [
  { name: 'deployments.apps', count: scaled },
  { name: 'statefulsets.apps', count: scaled },
  { name: 'daemonsets.apps', count: daemonCount },
];

const apiVersion = `${readingGroup.group}/${readingGroup.version}`;
const served = { group: readingGroup.group, resource: 'components' };

export const componentResources: readonly ApiResource[] = [
  { name: 'components', singularName: 'component', namespaced: false, kind: 'Component', verbs: ['get', 'list'] },
  {
    name: 'componenthealth',
    singularName: 'componenthealth',
    namespaced: false,
    kind: 'ComponentHealth',
    verbs: ['list'],
  },
];

/** Returns the error for an invalid path of components; undefined for other resources. */
export function componentsPathError(name: string): StatusError | undefined {
  if (name === 'components') return noSuchPath('components are served at …/components and …/components/{name}');
  if (name === 'componenthealth') return noSuchPath('componenthealth is served only at …/componenthealth');
  return undefined;
}

interface Workload extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly selfLink?: string };
  readonly spec?: {
    readonly template?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } };
  };
}

const isComponent = ({ namespace, labels }: StoredObject<unknown>): boolean =>
  labels[partOf] === platform || (namespace === system && labels[systemLabel] !== undefined);

const selectsPodsOf = (service: KubeObject, { spec: workload, metadata }: Workload): boolean => {
  const selector = Object.entries(selectorOf(service));
  const labels = workload?.template?.metadata?.labels ?? {};
  return (
    selector.length > 0 &&
    metadata.namespace === service.metadata.namespace &&
    selector.every(([key, value]) => labels[key] === value)
  );
};

/** Reads the components that a caller is allowed to see. */
class ComponentReader {
  readonly #deps: ComponentsDeps;
  readonly #namespaces: readonly string[];

  constructor(deps: ComponentsDeps) {
    this.#deps = deps;
    this.#namespaces = [...new Set([deps.namespace, system])];
  }

  /**
   * Returns components sorted by namespace and name. The namespace of the release comes first. Throws 403 if the caller
   * is allowed to list none of the kinds.
   */
  async list(context: RequestContext, hidden: string[] = []): Promise<PlatformComponent[]> {
    const { authorizer, namespace } = this.#deps;
    const namespaces = this.#namespaces;
    const kinds = await Promise.all(
      workloads.map(async ({ name, count }) => ({
        count,
        objects: await this.#read(name, namespaces, context, hidden),
      })),
    );
    if (context.user !== undefined && kinds.every(({ objects }) => objects === undefined))
      await assertAllowed(authorizer, context.user, {
        verb: 'list',
        group: 'apps',
        resource: 'deployments',
        namespace,
      });
    const services = ((await this.#read('services', namespaces, context, hidden)) ?? []).map(decodeObject);
    return kinds
      .flatMap(({ count, objects = [] }) =>
        objects.filter(isComponent).map((object) => componentOf(decodeObject(object) as Workload, count, services)),
      )
      .toSorted(
        (a, b) =>
          namespaces.indexOf(a.metadata.namespace) - namespaces.indexOf(b.metadata.namespace) ||
          (a.metadata.name < b.metadata.name ? -1 : 1),
      );
  }

  /** Returns the nodes; undefined if the caller is not allowed to list them. */
  async nodes(context: RequestContext, hidden: string[]): Promise<readonly StoredObject<NodeFields>[] | undefined> {
    return (await this.#read('nodes', [''], context, hidden)) as readonly StoredObject<NodeFields>[] | undefined;
  }

  /**
   * Returns the objects that the caller is allowed to list in these namespaces, or at cluster scope (''); undefined if
   * the caller has none of these rights. Adds the missing rights to `hidden`.
   */
  async #read(
    name: string,
    namespaces: readonly string[],
    context: RequestContext,
    hidden: string[],
  ): Promise<readonly StoredObject<unknown>[] | undefined> {
    const { authorizer, catalogue } = this.#deps;
    const { user, signal } = context;
    if (user === undefined) throw unauthorized();
    const entry = await catalogue.find(name, signal);
    const { group, resource } = entry.definition.underlying;
    const visible = new Set<string>();
    for (const one of namespaces) {
      const attributes = { verb: 'list', group, resource, namespace: one, name: '' };
      if ((await authorizer.authorize(user, attributes)).allowed) visible.add(one);
      else hidden.push(one === '' ? name : `${name} in ${one}`);
    }
    if (visible.size === 0) return undefined;
    return readFromCache(catalogue, entry, context, (store) =>
      store.order('name').filter((object) => visible.has(object.namespace)),
    );
  }
}

const rights =
  'Requires the right to `list` at least one of these kinds in one of the namespaces; `partial` names the missing rights.';

export function componentRoutes(deps: ComponentsDeps): Route[] {
  const reader = new ComponentReader(deps);
  const base = `/kapis/${apiVersion}` as const;
  const common = { method: 'get', access: authorizedByHandler, query: commonParameters } as const;
  return [
    defineRoute({
      ...common,
      path: `${base}/components`,
      summary: 'List the components of the platform',
      description: `Returns the Deployments, StatefulSets and DaemonSets of the platform in its namespace and in \`kube-system\`, and the add-ons of the cluster in \`kube-system\`. ${rights}`,
      responses: objectResponse(componentListSchema, 'The components'),
      async handler(request) {
        assertAcceptsObjects(request.req);
        const hidden: string[] = [];
        const items = await reader.list(request.context, hidden);
        const list: TypeOf<typeof componentListSchema> = {
          kind: 'ComponentList',
          apiVersion,
          metadata: {},
          items,
          totalItems: items.length,
          ...partial(hidden),
        };
        await writeResponse(request, list);
      },
    }),
    defineRoute({
      ...common,
      path: `${base}/components/:name`,
      summary: 'Get a component of the platform',
      description:
        'If both namespaces contain a component with this name, the component in the namespace of the release is returned. Requires the right to `list` the kind of the component in its namespace.',
      pathParameters: { name: 'Name of the component' },
      responses: objectResponse(componentSchema, 'The component'),
      async handler(request) {
        assertAcceptsObjects(request.req);
        const { name } = request.path;
        const found = (await reader.list(request.context)).find(({ metadata }) => metadata.name === name);
        if (found === undefined) throw notFound(served, name);
        await writeResponse(request, found);
      },
    }),
    defineRoute({
      ...common,
      path: `${base}/componenthealth`,
      summary: 'Get the health of components and nodes',
      description: `Counts the nodes, and the Deployments, StatefulSets and DaemonSets of the platform and of the add-ons of the cluster. \`unhealthy\` lists the unhealthy workloads. ${rights}`,
      responses: objectResponse(componentHealthSchema, 'The health of components and nodes'),
      async handler(request) {
        assertAcceptsObjects(request.req);
        await writeResponse(request, await healthOf(reader, request.context));
      },
    }),
  ];
}

async function healthOf(
  reader: ComponentReader,
  context: RequestContext,
): Promise<TypeOf<typeof componentHealthSchema>> {
  const hidden: string[] = [];
  const components = await reader.list(context, hidden);
  const nodes = await reader.nodes(context, hidden);
  const unhealthy = components.filter(({ healthy }) => !healthy);
  return {
    kind: 'ComponentHealth',
    apiVersion,
    metadata: {},
    healthy: unhealthy.length === 0 && (nodes ?? []).every(isHealthy),
    components: {
      total: components.length,
      healthy: components.length - unhealthy.length,
      unhealthy: unhealthy.map(({ metadata: { name, namespace }, workload: { kind }, replicas }) => ({
        name,
        namespace,
        kind,
        replicas,
      })),
    },
    ...(nodes === undefined ? {} : { nodes: { total: nodes.length, healthy: nodes.filter(isHealthy).length } }),
    ...partial(hidden),
  };
}

function componentOf(
  workload: Workload,
  count: (object: KubeObject) => PodCount,
  services: readonly KubeObject[],
): PlatformComponent {
  const { kind = '', apiVersion: workloadVersion = '', metadata } = workload;
  const { name, namespace = '', uid = '', creationTimestamp, labels, selfLink = '' } = metadata;
  const { desired, ready } = count(workload);
  return {
    kind: 'Component',
    apiVersion,
    metadata: { name, namespace, uid, creationTimestamp, labels, selfLink },
    workload: { apiVersion: workloadVersion, kind },
    services: services.filter((service) => selectsPodsOf(service, workload)).map((service) => service.metadata.name),
    replicas: { desired, ready },
    healthy: ready >= desired,
  };
}

const isHealthy = ({ fields }: StoredObject<NodeFields>): boolean =>
  fields.ready.startsWith('Ready') && !fields.isUnhealthy;

/** Returns the part of a response that names the missing rights. */
const partial = (hidden: readonly string[]): { readonly partial?: { readonly reason: string } } =>
  hidden.length === 0
    ? {}
    : { partial: { reason: `you are not allowed to list ${[...hidden].toSorted().join(', ')}` } };

async function writeResponse(
  {
    req,
    res,
    context,
    query: { pretty },
  }: Pick<RouteRequest<string, typeof authorizedByHandler>, 'req' | 'res' | 'context'> & {
    readonly query: { readonly pretty: boolean };
  },
  value: object,
): Promise<void> {
  const body = [Buffer.from(JSON.stringify(value))];
  await writeDocument(req, res, { contentType: objectTypeOf(req), body, pretty }, context);
}
