/**
 * Generates random requests in every supported form. Each request has functions that determine what kube-apiserver
 * allows.
 */
import * as fc from 'fast-check';
import { aggregated, gateway } from '../http.ts';
import { collectionPath, componentNamespaces, namespaces, testSelector, types, type TestObject } from './objects.ts';
import type { Caller, Oracle, Verb } from './oracle.ts';
import { transports, watchQuery, type Transport } from './transport.ts';

export interface Request {
  readonly user: number;
  readonly url: string;
  readonly transport: Transport;
  readonly accept?: string;
  /** Returns whether the user is allowed to see the object in the response. */
  readonly allows: (oracle: Oracle, caller: Caller, object: TestObject) => Promise<boolean>;
  /**
   * Returns whether the response must contain the object if the user is allowed to see it. Undefined if the response
   * can contain any objects, as a page does.
   */
  readonly selects?: (object: TestObject) => boolean;
  /** True if `totalItems` in the response is the number of selected objects. */
  readonly counts?: boolean;
  /**
   * True for a list of Namespaces that can omit objects. The list contains each Namespace that a Role in that namespace
   * allows the user to get, even if another role allows more.
   */
  readonly isPartial?: boolean;
  /** Returns whether the request is allowed. Undefined if the decision depends on more than one right. */
  readonly isAllowed?: (oracle: Oracle, caller: Caller) => Promise<boolean>;
  /** Returns further problems of a response of status 200. */
  readonly finds?: (oracle: Oracle, caller: Caller, text: string) => Promise<readonly string[]>;
  /** Object that the URL names. */
  readonly named?: TestObject;
}

const kapis = '/kapis/resources.platform.io/v1alpha3';
const apis = '/apis/resources.platform.io/v1alpha3';

const verbOf = (transport: Transport, isObject: boolean): Verb =>
  transport === 'get' ? (isObject ? 'get' : 'list') : 'watch';

/**
 * Returns whether the caller has the right to one object. This is the right to all objects of its namespace or, if the
 * request names the object, the right to its name.
 */
async function allowsObject(
  oracle: Oracle,
  caller: Caller,
  verb: Verb,
  { type, namespace, name }: TestObject,
  isNamed: boolean,
): Promise<boolean> {
  if (type === types.namespaces) return oracle.allowsNamespace(caller, verb, name, isNamed);
  return oracle.allows(caller, verb, type, namespace, isNamed || verb === 'get' ? name : '');
}

interface Filter {
  readonly query: string;
  readonly matches: (object: TestObject) => boolean;
  /**
   * True if the filter is a field selector for the name of one object. Such a request requires only the right to that
   * name.
   */
  readonly selectsName?: boolean;
}

const filter: fc.Arbitrary<(object: TestObject) => Filter> = fc
  .tuple(fc.constantFrom(...namespaces), fc.nat(8))
  .map(([namespace, kind]) => ({ name, marker }) => {
    const filters: readonly Filter[] = [
      { query: '', matches: () => true },
      { query: `names=${name},none`, matches: (one) => one.name === name },
      { query: `name=${name}`, matches: (one) => one.name.includes(name) },
      { query: `fieldSelector=metadata.name=${name}`, matches: (one) => one.name === name, selectsName: true },
      { query: `fieldSelector=metadata.namespace=${namespace}`, matches: (one) => one.namespace === namespace },
      { query: `namespace=${namespace}`, matches: (one) => one.namespace === namespace },
      { query: `alias=${marker}`, matches: (one) => one.marker === marker },
      { query: `label=rights-marker=${marker}`, matches: (one) => one.marker === marker },
      { query: `fieldSelector=metadata.labels.rights-marker!=${marker}`, matches: (one) => one.marker !== marker },
    ];
    return filters[kind] as Filter;
  });

const pages = fc.option(
  fc.record({
    page: fc.integer({ min: 1, max: 3 }),
    limit: fc.integer({ min: 0, max: 3 }),
    sortBy: fc.constantFrom('name', 'createTime', '.metadata.labels.rights-marker', '.data.of', '.metadata.namespace'),
    ascending: fc.boolean(),
  }),
  { nil: undefined, freq: 3 },
);

const base = { user: fc.nat(9), transport: fc.constantFrom(...transports) };

function collections(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  return fc
    .record({
      ...base,
      object: fc.constantFrom(...objects),
      alias: fc.nat(3),
      isWide: fc.boolean(),
      makeFilter: filter,
      page: pages,
      isLabelled: fc.boolean(),
    })
    .map(({ user, transport, object, alias, isWide, makeFilter, page, isLabelled }): Request => {
      const { type, namespace } = object;
      const within = isWide ? '' : namespace;
      const verb = verbOf(transport, false);
      const { query, matches, selectsName = false } = makeFilter(object);
      const resource = [type.resource, ...type.aliases][alias] ?? type.resource;
      const path = `${kapis}${within === '' ? '' : `/namespaces/${within}`}/${resource}`;
      const paged =
        page === undefined || transport !== 'get'
          ? ''
          : Object.entries(page)
              .map(([name, value]) => `${name}=${value}`)
              .join('&');
      const parts = [
        query,
        paged,
        isLabelled ? `labelSelector=${testSelector}` : '',
        transport === 'get' ? '' : watchQuery,
      ];
      // Uncached resources are watched at kube-apiserver, which supports fewer filters.
      const isOther = transport !== 'get' && type.isUncached === true;
      const selects = (one: TestObject): boolean =>
        one.type === type && (within === '' || one.namespace === within) && matches(one);
      return {
        user,
        transport,
        url: `${gateway()}${path}?${parts.filter((part) => part !== '').join('&')}`,
        allows: (oracle, caller, one) =>
          allowsObject(oracle, caller, verb, one, selectsName && one.name === object.name),
        ...(isOther || paged !== '' ? {} : { selects }),
        ...(transport === 'get' && isLabelled && !isOther ? { counts: true, selects } : {}),
        isPartial: type === types.namespaces,
        ...(within !== '' && query === '' && !isOther
          ? { isAllowed: (oracle: Oracle, caller: Caller) => oracle.allows(caller, verb, type, within) }
          : {}),
        named: object,
      };
    });
}

function single(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  return fc
    .record({
      ...base,
      object: fc.constantFrom(...objects),
      alias: fc.nat(3),
      within: fc.constantFrom('own', '', ...namespaces),
    })
    .map(({ user, transport, object, alias, within }): Request => {
      const { type, name } = object;
      const verb = verbOf(transport, true);
      const namespace = within === 'own' ? object.namespace : within;
      const resource = [type.resource, ...type.aliases][alias] ?? type.resource;
      const query = transport === 'get' ? '' : `?${watchQuery}`;
      return {
        user,
        transport,
        url: `${gateway()}${kapis}${namespace === '' ? '' : `/namespaces/${namespace}`}/${resource}/${name}${query}`,
        allows: (oracle, caller, one) => allowsObject(oracle, caller, verb, one, true),
        ...(namespace === object.namespace && transport === 'get'
          ? {
              selects: (one: TestObject) => one === object,
              isAllowed: (oracle: Oracle, caller: Caller) => allowsObject(oracle, caller, verb, object, true),
            }
          : {}),
        named: object,
      };
    });
}

/**
 * Generates requests for cluster-scoped objects with a namespace in the path. A right in the namespace covers only the
 * Namespace object itself.
 */
function nested(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  const wide = objects.filter(({ namespace }) => namespace === '');
  const ofNamespaces = wide.filter(({ type }) => type === types.namespaces);
  return fc
    .record({
      ...base,
      object: fc.oneof(fc.constantFrom(...wide), fc.constantFrom(...ofNamespaces)),
      within: fc.constantFrom(...namespaces),
    })
    .map(({ user, transport, object, within }): Request => {
      const query = transport === 'get' ? '' : `?${watchQuery}`;
      return {
        user,
        transport,
        url: `${gateway()}${kapis}/namespaces/${within}/${object.type.resource}/${object.name}${query}`,
        allows: (oracle, caller, one) => allowsObject(oracle, caller, verbOf(transport, true), one, true),
      };
    });
}

/**
 * Generates requests for subresources, the deprecated form of a watch, and other spellings of a path. The user must be
 * allowed to see any returned object.
 */
function odd(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  const form = fc.constantFrom<(object: TestObject, other: string) => string>(
    ({ type, name }, other) => `/namespaces/${other}/${type.resource}/${name}/status`,
    ({ type, name }, other) => `/namespaces/${other}/${type.resource}/${name}/log`,
    ({ type }, other) => `/watch/namespaces/${other}/${type.resource}`,
    ({ type, name }) => `/watch/${type.resource}/${name}`,
    ({ name }, other) => `/namespaces/${other}%2Fnamespaces/${name}`,
    ({ type, name }, other) =>
      `/namespaces/${other}/%${type.resource.charCodeAt(0).toString(16)}${type.resource.slice(1)}/${name}`,
    ({ name }) => `/namespaces/${name}/status`,
    ({ type }, other) => `/${type.resource}?fieldSelector=metadata.name=${other},metadata.name=${other}`,
    ({ type, name }, other) =>
      `/${type.resource}?fieldSelector=metadata.name=${other}&fieldSelector=metadata.name=${name}`,
    ({ type, name }, other) => `/${type.resource}?fieldSelector=metadata.uid!=${other}\\,metadata.name=${name}`,
    (_, other) => `/namespaces/${other}/pods?serviceName=selecting-${other.split('-').at(-1)}`,
  );
  return fc
    .record({ ...base, object: fc.constantFrom(...objects), other: fc.constantFrom(...namespaces), form })
    .map(({ user, transport, object, other, form: path }): Request => {
      const url = `${gateway()}${kapis}${path(object, other)}`;
      const isList = url.includes('?');
      const query = transport === 'get' ? '' : `${isList ? '&' : '?'}${watchQuery}`;
      return {
        user,
        transport,
        url: `${url}${query}`,
        allows: async (oracle, caller, one) =>
          (await allowsObject(oracle, caller, verbOf(transport, !isList), one, true)) ||
          (isList && (await allowsObject(oracle, caller, verbOf(transport, false), one, false))),
        named: object,
      };
    });
}

const tables = [
  'application/json',
  'application/json;as=Table;g=meta.k8s.io;v=v1',
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
];

/**
 * Generates requests to the aggregated API. The user needs the right to nodes in both the platform's group and the core
 * group.
 */
function aggregatedNodes(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  const ofNodes = objects.filter(({ type }) => type === types.nodes);
  return fc
    .record({ ...base, object: fc.constantFrom(...ofNodes), form: fc.nat(3), accept: fc.constantFrom(...tables) })
    .map(({ user, transport, object, form, accept }): Request => {
      const path = ['/nodes', `/nodes/${object.name}`, '/watch/nodes', `/watch/nodes/${object.name}`][form] as string;
      const isOld = form > 1;
      const isObject = form === 1;
      const verb: Verb = isOld || (transport !== 'get' && !isObject) ? 'watch' : isObject ? 'get' : 'list';
      const isNamed = isObject || form === 3;
      const query = verb === 'watch' ? `${watchQuery}&labelSelector=${testSelector}` : `labelSelector=${testSelector}`;
      return {
        user,
        transport: verb === 'watch' && transport === 'get' ? 'lines' : transport,
        accept: isObject ? (tables[0] as string) : accept,
        url: `${aggregated()}${apis}${path}${isObject ? '' : `?${query}`}`,
        allows: async (oracle, caller, one) => {
          const attributes = {
            verb,
            group: 'resources.platform.io',
            resource: 'nodes',
            ...(isNamed ? { name: one.name } : {}),
          };
          return (await oracle.reviews(caller, attributes)) && (await allowsObject(oracle, caller, verb, one, isNamed));
        },
        named: object,
      };
    });
}

/** Generates requests that the gateway forwards, and that kube-apiserver authorizes as the user. */
function proxied(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  return fc
    .record({ ...base, object: fc.constantFrom(...objects), isObject: fc.boolean(), isWide: fc.boolean() })
    .map(({ user, transport, object, isObject, isWide }): Request => {
      const { type, namespace, name } = object;
      const verb = verbOf(isObject ? 'get' : transport, isObject);
      const path = collectionPath(type, isWide && !isObject ? '' : namespace);
      const query = verb === 'watch' ? `?${watchQuery}` : '';
      return {
        user,
        transport: isObject ? 'get' : transport === 'server-sent events' ? 'lines' : transport,
        url: `${gateway()}${path}${isObject ? `/${name}` : query}`,
        allows: (oracle, caller, one) => allowsObject(oracle, caller, verb, one, isObject),
        named: object,
      };
    });
}

/**
 * Generates requests for components. A user sees a component if the user is allowed to list its kind in its namespace.
 */
function components(objects: readonly TestObject[]): fc.Arbitrary<Request> {
  const component = objects.find(({ namespace }) => namespace === 'kube-system') as TestObject;
  return fc
    .record({ ...base, path: fc.constantFrom('/components', `/components/${component.name}`, '/componenthealth') })
    .map(({ user, path }): Request => ({
      user,
      transport: 'get',
      url: `${gateway()}${kapis}${path}`,
      allows: async (oracle, caller, one) =>
        componentNamespaces.some((name) => name === one.namespace) &&
        (await oracle.allows(caller, 'list', one.type, one.namespace)),
      named: component,
    }));
}

/** Generates one of these requests. A counterexample shows the request in readable form. */
export const readable = (...weighted: fc.WeightedArbitrary<Request>[]): fc.Arbitrary<Request> =>
  fc
    .oneof(...weighted)
    .map((one) => Object.assign(one, { [fc.toStringMethod]: () => `user ${one.user}: ${one.transport} ${one.url}` }));

export const requests = (objects: readonly TestObject[]): fc.Arbitrary<Request> =>
  readable(
    { weight: 6, arbitrary: collections(objects) },
    { weight: 5, arbitrary: single(objects) },
    { weight: 2, arbitrary: odd(objects) },
    { weight: 2, arbitrary: nested(objects) },
    { weight: 2, arbitrary: aggregatedNodes(objects) },
    { weight: 2, arbitrary: proxied(objects) },
    { weight: 1, arbitrary: components(objects) },
  );
