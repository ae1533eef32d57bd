/** The routes as the descriptions have them: what they are called, and what they stand among. */
import type { Route } from '../../http/route.ts';
import { speaksOAuth } from '../../http/response/write-error.ts';
import type { Example } from './examples.ts';
import type { OperationDescription, TagDescription } from './operation.ts';
import { isPage, refusalsOf } from './error-responses.ts';
import { bodyOf, parameterOf, responsesOf } from './json-schema.ts';
import { securityOf } from './security.ts';

/** What the descriptions call things. */

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** `stable.example.com` is StableExampleCom. */
export const camel = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join('');

/** `io.platform.resources.v1alpha3` for group resources.platform.io: the reversed domain, as Kubernetes names its own. */
export const packageOf = (group: string, version: string): string =>
  `${group.split('.').toReversed().join('.')}.${version}`;

/** `/apis/x/:name` and `/x/*path` as OpenAPI writes them. */
export const templated = (path: string): string => path.replace(/[:*](\w+)/g, '{$1}');

interface Section extends TagDescription {
  readonly has: (route: Route) => boolean;
}

const below =
  (group: string) =>
  ({ path }: Route) =>
    path.startsWith(`/kapis/${group}`);

/** Asked before the others, read after them. */
const exceptions: readonly Section[] = [
  {
    name: 'removed',
    description: 'What is no longer here, and says what is in its place',
    has: ({ removed }) => removed === true,
  },
  {
    name: 'pages',
    description: 'For people, in a browser and over TLS alone: to log in, to be asked, to log out',
    has: (route) => isPage(route) && speaksOAuth(route.path),
  },
];
/** The first one that has a route. */
const sections: readonly Section[] = [
  {
    name: 'oauth',
    description: 'Tokens: OAuth 2.0 and OpenID Connect',
    has: ({ path }) => speaksOAuth(path),
  },
  { name: 'resources', description: 'Reading whatever the cluster serves', has: below('resources.platform.io') },
  { name: 'iam', description: 'Accounts', has: below('iam.platform.io') },
  { name: 'logging', description: 'The logs of containers', has: below('logging.platform.io') },
  { name: 'tenant', description: 'The logs of containers, under their other name', has: below('tenant.platform.io') },
  { name: 'config', description: 'What clients need to be set up', has: below('config.platform.io') },
  { name: 'server', description: 'The server itself: discovery, descriptions, health', has: () => true },
];

export const tagOf = (route: Route): TagDescription =>
  [...exceptions, ...sections].find(({ has }) => has(route)) as TagDescription;

/** Those of these routes, in the order in which they are read. */
export const tagsOf = (routes: readonly Route[]): readonly TagDescription[] => {
  const used = new Set(routes.map((route) => tagOf(route).name));
  return [...sections, ...exceptions.toReversed()]
    .filter(({ name }) => used.has(name))
    .map(({ name, description }) => ({ name, description }));
};

const verbs = { post: 'create', put: 'update', patch: 'patch', delete: 'delete' } as const;
const single = (plural: string): string => plural.replace(/s$/, '');

/** What the path is about: `/users/:name/sessions` is UserSessions, for of many one is meant where a name follows. */
function subjectOf(segments: readonly string[]): string {
  return segments
    .map((segment, at) => {
      const next = segments[at + 1];
      const isName = /^[:*]/.test(segment);
      const isNamed = next !== undefined && /^[:*]/.test(next) && next !== ':resources';
      const said = segments[at - 1];
      // A name says nothing more than what it names.
      if (isName && segment !== ':resources' && said?.endsWith('s') === true) return '';
      return camel(isNamed ? single(segment) : segment);
    })
    .join('');
}

/**
 * `listNodes`, `createIamUser`, `postOauthToken`: the first word of the group, unless that is resources itself, and what is behind
 * its version. A GET of a plural is a list; what is created is one.
 */
export function operationIdOf({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const [prefix = '', group = '', version, ...rest] = path.slice(1).split('/');
  if (prefix !== 'kapis' || rest.length === 0) return method + subjectOf(path.slice(1).split('/'));
  const isList = method === 'get' && rest.at(-1)?.endsWith('s') === true && rest.at(-1) !== 'logs';
  const verb = method === 'get' ? (isList ? 'list' : 'get') : verbs[method];
  // Of all versions.
  const isOfAll = version?.startsWith(':') === true;
  const about = isOfAll ? rest.filter((one) => one !== version) : rest;
  const [ofGroup = ''] = group.split('.');
  const subject = subjectOf(about);
  return (
    verb +
    (ofGroup === 'resources' ? '' : capital(ofGroup)) +
    (verb === 'create' && !isOfAll ? single(subject) : subject)
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
  answers: responsesOf(route.answers ?? {}),
  refusals: refusalsOf(route),
});
