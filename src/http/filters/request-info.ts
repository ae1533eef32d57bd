import { loggingGroup, tenantGroup } from '../../config/names.ts';
import { badRequest, noSuchPath } from '../../runtime/errors.ts';
import type { RequestInfo } from '../route.ts';
import { maxParameters } from '../../runtime/redaction.ts';
import type { RequestFilter } from '../exchange.ts';

/** Comes before anything parses the query: 60 KiB of `a&` are 30,000 parameters, which took the event loop 16 ms. */
export const parameterLimit: RequestFilter = ({ search }) => {
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

const longestPath = 8 * 1024;

/**
 * What a URL asks for (k8s.io/apiserver pkg/endpoints/request/requestinfo.go). Accepted forms:
 *
 *     /kapis/{group}/{version}/{resource}[/{name}[/{subresource}]]
 *     /kapis/{group}/{version}/namespaces/{namespace}/{resource}[/{name}[/{subresource}]]
 *     /apis/… the same; /api/{version}/… the same in the core group; …/watch/… is the old form of a watch
 *
 * Anything else is a non-resource URL. Throws 400 for a path that is no path, 404 for one with empty segments.
 */
export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  if (path.length > longestPath) throw badRequest(`the path must not be longer than ${longestPath} bytes`);
  const segments = segmentsOf(path);
  const [prefix = ''] = segments;
  const grouped = prefix === 'apis' || prefix === 'kapis';
  const rest = segments.slice(grouped ? 3 : 2);
  if ((!grouped && prefix !== 'api') || rest.length === 0)
    return { ...nothing, path, verb: method.toLowerCase(), prefix };
  const oldWatch = rest[0] === 'watch' && rest.length > 1;
  const parts = oldWatch ? rest.slice(1) : rest;
  const inNamespace = parts[0] === 'namespaces' && parts.length > 2 && !namespaceSubresources.has(parts[2] ?? '');
  const [resource = '', name = '', subresource = ''] = inNamespace ? parts.slice(2) : parts;
  const namespace = inNamespace ? (parts[1] ?? '') : resource === 'namespaces' ? name : '';
  const verb = verbOf(method, name, oldWatch, prefix, query);
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
      (prefix !== 'kapis' && streams.has(subresource)) ||
      (isLogs(group, resource, name) && isStream(query)),
  };
}

/** What the standards for browsers read and Go does not: a semicolon, a bad escape. */
const unreadable = /;|%(?![0-9a-f]{2})/i;

/**
 * A query as kube-apiserver reads it (Go's net/url, ParseQuery): pairs that it cannot read are none. What we took for a watch and it for a
 * list would be a list without a limit.
 */
export function queryAsGo(search: string): URLSearchParams {
  const pairs = search.split('&').filter((pair) => !unreadable.test(pair));
  // Behind an ampersand a question mark belongs to the first name.
  return new URLSearchParams(`&${pairs.join('&')}`);
}

/** BasicLongRunningRequestCheck of kube-apiserver. */
export const streams = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

const isLogs = (group: string, resource: string, name: string): boolean =>
  resource === 'logs' && name === '' && (group === loggingGroup || group === tenantGroup);

/** Of the log queries, those that go on for as long as there is something to tell. */
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

/** One object is watched by its own path only on /kapis, and by the old form; kube-apiserver takes it for a get. */
function verbOf(method: string, name: string, oldWatch: boolean, prefix: string, query: URLSearchParams): string {
  const verb = verbs.get(method) ?? method.toLowerCase();
  const canWatch = name === '' || oldWatch || prefix === 'kapis';
  if (verb === 'get' && canWatch && (oldWatch || !['false', '0'].includes((query.get('watch') ?? '0').toLowerCase())))
    return 'watch';
  if (name !== '') return verb;
  return verb === 'get' ? 'list' : verb === 'delete' ? 'deletecollection' : verb;
}

/**
 * Returns the name that a list or watch is limited to: it needs only the right to that name. Paths of /kapis may begin with a dot, which
 * kube-apiserver does not know.
 */
function selectedName(query: URLSearchParams, prefix: string): string {
  const [, dot = '', name = ''] =
    /(?:^|[^\\],)(\.?)metadata\.name==?([\w.:-]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '') ?? [];
  return dot === '' || prefix === 'kapis' ? name : '';
}

/** Nothing to decode, and nothing that no name can be. */
const plain = /^(?:\/[\w:-][\w.:-]*)+$/;
/** What follows is a path of somebody's own server, which may have slashes where it likes. */
const behindProxy = /^(\/api\/v1\/(?:namespaces\/[^/]+\/)?(?:nodes|pods|services)\/[^/]+\/proxy)(\/.*)$/;

function segmentsOf(path: string): string[] {
  if (plain.test(path)) return path.slice(1).split('/');
  if (!path.startsWith('/')) throw badRequest('the request target must be a path');
  // Express would cut off a fragment and trim white space: then it would route another path than this one.
  if (/[^!-~]|#/.test(path)) throw badRequest('the path has a character that must be percent-encoded');
  const [, front = path, behind = ''] = behindProxy.exec(path) ?? [];
  for (const segment of behind.split(/\/|%2f/i)) decoded(segment);
  return namesIn(front);
}

function namesIn(path: string): string[] {
  const segments = path.slice(1).split('/');
  // One slash at the end is forgiven, as kube-apiserver does.
  if (segments.length > 1 && segments.at(-1) === '') segments.pop();
  return segments.map((segment) => {
    const text = decoded(segment);
    if (text === '' && path !== '/') throw noSuchPath();
    return text;
  });
}

function decoded(segment: string): string {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    throw badRequest(`the path has a bad percent-encoding in ${JSON.stringify(segment.slice(0, 100))}`);
  }
  if (text === '.' || text === '..' || /[\p{Cc}/\\]/u.test(text))
    throw badRequest(`the path has a segment that no name can be: ${JSON.stringify(text.slice(0, 100))}`);
  return text;
}
