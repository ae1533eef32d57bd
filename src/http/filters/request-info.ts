import { loggingGroup, tenantGroup } from '../../config/names.ts';
import { badRequest, pathNotFound } from '../../runtime/errors.ts';
import type { RequestInfo } from '../route.ts';
import { maxParameters } from '../../runtime/redaction.ts';
import type { RequestFilter } from '../exchange.ts';

/**
 * Limits the number of parameters before the query is parsed. Parsing 60 KiB of `a&`, which are 30,000 parameters,
 * blocked the event loop for 16 ms.
 */
export const parameterLimit: RequestFilter = ({ target: { search } }) => {
  if (search.length > maxParameters && search.split('&', maxParameters + 1).length > maxParameters)
    throw badRequest(`the query has more than ${maxParameters} parameters`);
};

const verbs = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

const maxPathLength = 8 * 1024;

/**
 * Parses a URL as kube-apiserver does (k8s.io/apiserver pkg/endpoints/request/requestinfo.go). Forms of resource
 * requests:
 *
 *     /kapis/{group}/{version}/{resource}[/{name}[/{subresource}]]
 *     /kapis/{group}/{version}/namespaces/{namespace}/{resource}[/{name}[/{subresource}]]
 *     /apis/… the same; /api/{version}/… the same in the core group; …/watch/… is the legacy form of a watch
 *
 * All others are non-resource URLs. Throws 400 for an invalid path and 404 for a path with empty segments.
 */
export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  if (path.length > maxPathLength) throw badRequest(`the path must not be longer than ${maxPathLength} bytes`);
  const segments = segmentsOf(path);
  const [prefix = ''] = segments;
  const grouped = prefix === 'apis' || prefix === 'kapis';
  const rest = segments.slice(grouped ? 3 : 2);
  if ((!grouped && prefix !== 'api') || rest.length === 0)
    return { ...nothing, path, verb: method.toLowerCase(), prefix, isLongRunning: path.startsWith(profilesPath) };
  const isLegacyWatch = rest[0] === 'watch' && rest.length > 1;
  const parts = isLegacyWatch ? rest.slice(1) : rest;
  const inNamespace = parts[0] === 'namespaces' && parts.length > 2 && !namespaceSubresources.has(parts[2] ?? '');
  const [resource = '', name = '', subresource = ''] = inNamespace ? parts.slice(2) : parts;
  const namespace = inNamespace ? (parts[1] ?? '') : resource === 'namespaces' ? name : '';
  const verb = verbOf(method, name, isLegacyWatch, prefix, query);
  const group = grouped ? (segments[1] ?? '') : '';
  return {
    path,
    isResourceRequest: true,
    verb,
    prefix,
    group,
    version: segments[grouped ? 2 : 1] ?? '',
    namespace,
    resource,
    subresource,
    name: verb === 'list' || verb === 'watch' ? name || selectedName(query, prefix) : name,
    isLongRunning:
      verb === 'watch' ||
      (prefix !== 'kapis' && podStreams.has(subresource)) ||
      (isLogs(group, resource, name) && isStream(query)),
  };
}

/** Syntax that the WHATWG URL standard accepts and Go does not: a semicolon, an invalid escape. */
const unreadable = /;|%(?![0-9a-f]{2})/i;

/**
 * Parses a query as kube-apiserver does (ParseQuery of Go's net/url), which ignores pairs that it cannot parse.
 * Otherwise one request could be a watch for this server and a list for kube-apiserver, and the limits for lists would
 * not apply.
 */
export function parseQueryAsGo(search: string): URLSearchParams {
  const pairs = search.split('&').filter((pair) => !unreadable.test(pair));
  // The leading ampersand makes URLSearchParams keep a question mark as part of the first name.
  return new URLSearchParams(`&${pairs.join('&')}`);
}

/** Subresources in BasicLongRunningRequestCheck of kube-apiserver. */
export const podStreams = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

/** Prefix of the paths of profiles. Requests for profiles are long-running, like `/debug/pprof/` in kube-apiserver. */
export const profilesPath = '/debug/profiles/';

const isLogs = (group: string, resource: string, name: string): boolean =>
  resource === 'logs' && name === '' && (group === loggingGroup || group === tenantGroup);

/** Returns true for log queries that follow or export logs. */
const isStream = (query: URLSearchParams): boolean =>
  ['true', '1'].includes(query.get('follow') ?? '') || query.get('operation') === 'export';

const namespaceSubresources = new Set(['status', 'finalize']);

const nothing = {
  isResourceRequest: false,
  group: '',
  version: '',
  namespace: '',
  resource: '',
  subresource: '',
  name: '',
  isLongRunning: false,
};

/**
 * Returns the verb. The path of one object can be watched on /kapis and in the legacy form; kube-apiserver treats other
 * watches of one object as a get. In the legacy form the verb does not depend on the method.
 */
function verbOf(method: string, name: string, isLegacyWatch: boolean, prefix: string, query: URLSearchParams): string {
  if (isLegacyWatch) return 'watch';
  const verb = verbs.get(method) ?? method.toLowerCase();
  const canWatch = name === '' || prefix === 'kapis';
  if (verb === 'get' && canWatch && !['false', '0'].includes((query.get('watch') ?? '0').toLowerCase())) return 'watch';
  if (name !== '') return verb;
  return verb === 'get' ? 'list' : verb === 'delete' ? 'deletecollection' : verb;
}

/**
 * Returns the name to which a field selector limits a list or watch. Such a request needs only the right to that name.
 * On /kapis, paths may start with a dot, which kube-apiserver does not accept.
 */
function selectedName(query: URLSearchParams, prefix: string): string {
  const [, dot = '', name = ''] =
    /(?:^|[^\\],)(\.?)metadata\.name==?([\w.:-]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '') ?? [];
  return dot === '' || prefix === 'kapis' ? name : '';
}

/** Matches paths that need no decoding and have no invalid segments. */
const plain = /^(?:\/[\w:-][\w.:-]*)+$/;
/** Separates the path of this server from the path at a proxied server, which may have empty segments. */
const behindProxy = /^(\/api\/v1\/(?:namespaces\/[^/]+\/)?(?:nodes|pods|services)\/[^/]+\/proxy)(\/.*)$/;

function segmentsOf(path: string): string[] {
  if (plain.test(path)) return path.slice(1).split('/');
  if (!path.startsWith('/')) throw badRequest('the request target must be a path');
  // Express removes a fragment and white space, so it would route a different path.
  if (/[^!-~]|#/.test(path)) throw badRequest('the path has a character that must be percent-encoded');
  const [, front = path, behind = ''] = behindProxy.exec(path) ?? [];
  for (const segment of behind.split(/\/|%2f/i)) decoded(segment);
  return namesIn(front);
}

function namesIn(path: string): string[] {
  const segments = path.slice(1).split('/');
  // One trailing slash is accepted, as in kube-apiserver.
  if (segments.length > 1 && segments.at(-1) === '') segments.pop();
  return segments.map((segment) => {
    const text = decoded(segment);
    if (text === '' && path !== '/') throw pathNotFound('; the path has an empty segment');
    return text;
  });
}

function decoded(segment: string): string {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    throw badRequest(`the path has an invalid percent-encoding in ${JSON.stringify(segment.slice(0, 100))}`);
  }
  if (text === '.' || text === '..' || /[\p{Cc}/\\]/u.test(text))
    throw badRequest(`the path has an invalid segment: ${JSON.stringify(text.slice(0, 100))}`);
  return text;
}
