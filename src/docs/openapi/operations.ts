/** Derives the operations of the descriptions, with their IDs and tags, from the routes. */
import { configGroup, iamGroup, loggingGroup, resourcesGroup, tenantGroup } from '../../config/names.ts';
import type { Route } from '../../http/route.ts';
import { usesOAuthErrors } from '../../http/response/write-error.ts';
import type { Example } from './examples.ts';
import type { OperationDescription, TagDescription } from './operation.ts';
import { isPage, errorResponsesOf } from './error-responses.ts';
import { bodyOf, parameterOf, responsesOf } from './json-schema.ts';
import { securityOf } from './security.ts';

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Returns text in upper camel case: `stable.example.com` becomes `StableExampleCom`. */
export const camel = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join('');

/**
 * Returns the package of a group and version: `io.platform.resources.v1alpha3` for resources.platform.io, as Kubernetes
 * does.
 */
export const packageOf = (group: string, version: string): string =>
  `${group.split('.').toReversed().join('.')}.${version}`;

/** Writes `:name` and `*path` in a path as OpenAPI does, in braces. */
export const templated = (path: string): string => path.replace(/[:*](\w+)/g, '{$1}');

interface Section extends TagDescription {
  readonly matches: (route: Route) => boolean;
}

const below =
  (group: string) =>
  ({ path }: Route) =>
    path.startsWith(`/kapis/${group}`);

/** Sections whose conditions are checked first, and which are listed last. */
const exceptions: readonly Section[] = [
  {
    name: 'removed',
    description: 'Removed operations; the error names the replacement',
    matches: ({ removed }) => removed === true,
  },
  {
    name: 'pages',
    description: 'Pages for people, over HTTPS only: log in, give consent, manage the account, log out',
    matches: (route) => isPage(route) && usesOAuthErrors(route.path),
  },
];
/** A route belongs to the first section that matches it. */
const sections: readonly Section[] = [
  {
    name: 'oauth',
    description: 'OAuth 2.0 and OpenID Connect: tokens, keys and metadata',
    matches: ({ path }) => usesOAuthErrors(path),
  },
  {
    name: 'resources',
    description: 'Objects of the cluster, and the health of its components; read-only',
    matches: below(resourcesGroup),
  },
  { name: 'iam', description: 'Users, their passwords, sessions and login records', matches: below(iamGroup) },
  { name: 'logging', description: 'Container logs', matches: below(loggingGroup) },
  { name: 'tenant', description: 'Container logs, under a second path', matches: below(tenantGroup) },
  { name: 'config', description: 'Configuration of clients, such as a kubeconfig', matches: below(configGroup) },
  {
    name: 'server',
    description: 'The server itself: health, metrics, API discovery and API descriptions',
    matches: () => true,
  },
];

export const tagOf = (route: Route): TagDescription =>
  [...exceptions, ...sections].find(({ matches }) => matches(route)) as TagDescription;

/** Returns the tags of the routes in the order of the descriptions. */
export const tagsOf = (routes: readonly Route[]): readonly TagDescription[] => {
  const used = new Set(routes.map((route) => tagOf(route).name));
  return [...sections, ...exceptions.toReversed()]
    .filter(({ name }) => used.has(name))
    .map((section) => ({
      name: section.name,
      description: section.description,
      group: exceptions.includes(section) ? 'Other' : 'APIs',
    }));
};

const verbs = { post: 'create', put: 'update', patch: 'patch', delete: 'delete' } as const;
const single = (plural: string): string => plural.replace(/s$/, '');

/**
 * Returns the subject of a path: `/users/:name/sessions` becomes `UserSessions`. A plural before a name becomes
 * singular.
 */
function subjectOf(segments: readonly string[]): string {
  return segments
    .map((segment, at) => {
      const next = segments[at + 1];
      const isName = /^[:*]/.test(segment);
      const isNamed = next !== undefined && /^[:*]/.test(next) && next !== ':resources';
      const before = segments[at - 1];
      // The name of an object is omitted, because the singular of its resource already denotes the object.
      if (isName && segment !== ':resources' && before?.endsWith('s') === true) return '';
      return camel(isNamed ? single(segment) : segment);
    })
    .join('');
}

/**
 * Returns `listNodes`, `createIamUser` or `postOauthToken`: a verb, the first word of the group unless that is
 * `resources`, and the rest of the path after the version. GET of a plural is `list`; `create` takes the singular.
 */
export function operationIdOf({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const [prefix = '', group = '', version, ...rest] = path.slice(1).split('/');
  if (prefix !== 'kapis' || rest.length === 0) return method + subjectOf(path.slice(1).split('/'));
  const isList = method === 'get' && rest.at(-1)?.endsWith('s') === true && rest.at(-1) !== 'logs';
  const verb = method === 'get' ? (isList ? 'list' : 'get') : verbs[method];
  // A route with a version parameter serves all versions.
  const hasVersionParameter = version?.startsWith(':') === true;
  const about = hasVersionParameter ? rest.filter((one) => one !== version) : rest;
  const [ofGroup = ''] = group.split('.');
  const subject = subjectOf(about);
  return (
    verb +
    (ofGroup === 'resources' ? '' : capital(ofGroup)) +
    (verb === 'create' && !hasVersionParameter ? single(subject) : subject)
  );
}

export const operationOf = (route: Route, examples: Readonly<Record<string, Example>> = {}): OperationDescription => ({
  method: route.method,
  path: templated(route.path),
  operationId: operationIdOf(route),
  example: examples[operationIdOf(route)],
  tag: tagOf(route).name,
  summary: route.summary,
  description: route.description,
  deprecated: route.removed === true,
  security: securityOf(route),
  parameters: (route.parameters ?? []).map(parameterOf),
  body: route.body && bodyOf(route.body),
  responses: responsesOf(route.responses ?? {}),
  errors: errorResponsesOf(route),
});
