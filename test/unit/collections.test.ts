/**
 * Collections that outlive a call and grow are bounded: each is a BoundedCache or an InProgress (src/bounded-cache.ts), or in this list
 * with the reason why no request chooses its keys, or why it cannot grow.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { collectionsIn } from './collections.ts';

/** By reason. Each is a path below src/ without `.ts`, the class or function (nothing for a module), and the name. */
const argued: Readonly<Record<string, readonly string[]>> = {
  'it is the implementation of the bounded ones': [
    'bounded-cache all',
    'bounded-cache BoundedCache cache',
    'bounded-cache InProgress values',
  ],
  'its keys are names or uids of objects in the cluster, and it holds no more than there are': [
    'accounts/directory/account-index AccountIndex all',
    'accounts/directory/account-index AccountIndex names',
    'accounts/login-limit LoginLimiter peers',
    'accounts/sessions/session-store SessionStore ofUser',
    'accounts/user-conditions UserConditions waiting',
    'accounts/user-conditions UserConditions sharing',
    'accounts/users Users names',
    'describe/custom-resources customResourcesRoutes known',
    'kapis/catalogue Catalogue copies',
    'kapis/catalogue Catalogue refused',
    'kapis/granted-namespaces GrantedNamespaces bindings',
    'kapis/granted-namespaces GrantedNamespaces bySubject',
    'kube/arena SharedSlab tenants',
    'kube/arena Arena slabs',
    'kube/arena Arena fresh',
    'kube/discovery Discovery read',
    'kube/discovery Discovery revisions',
    'kube/history History changes',
    'kube/informer createInformer objects',
    'kube/own-rights OwnRights answers',
    'kube/store Store objects',
  ],
  'its keys are texts of objects in the cluster, and their characters are limited': [
    'kube/managed-fields ManagedFields known',
  ],
  'its keys are names in the configuration, or it follows the configuration': [
    'accounts/directory/directory Directory parameters',
    'accounts/identity-providers/directories Directories slots',
    'accounts/identity-providers/openid OpenIDProviders discovered',
    'accounts/identity-providers/openid OpenIDProviders underWay',
    'accounts/identity-providers/openid OpenIDProviders slots',
    'accounts/passwords Passwords decoys',
    'accounts/passwords Passwords costs',
    'accounts/secret-refs SecretRefs informers',
    'config/live LiveConfiguration warnings',
  ],
  'its keys are usernames and uids of accounts that exist, and their number is limited': [
    'accounts/write-behind WriteBehind waiting',
  ],
  'its keys are a few that the source code names': [
    'kapis/apis-handler apisHandlers views',
    'kapis/apis-handler apisHandlers prepared',
    'kapis/answers Answers prepared',
  ],
  'its keys are three names and label keys of at most 317 characters, 32 in all': ['kube/selection Selections indexes'],
  'its keys are numbers, 16 at most': ['kube/stored-object StoredObject remembered'],
  'it holds 1,000 documents or 4,000 other responses, and cuts one for each beyond': [
    'http/unread-responses UnreadResponses byNetwork',
  ],
  'it holds the two states of one change': ['kapis/watch/watch Watch verdicts'],
  'it is filled when the server starts': [
    'http/metrics knownResources',
    'kapis/catalogue Catalogue kept',
    'accounts/directory/directory Directory listeners',
    'accounts/directory/directory Directory dismissals',
    'accounts/sessions/session-store SessionStore ended',
    'config/live LiveConfiguration listeners',
    'config/live LiveConfiguration subscribers',
    'kube/discovery Discovery listeners',
    'kube/informer createInformer listeners',
    'kube/store Store listeners',
  ],
  'it holds audit events, and their bytes are limited': [
    'audit/auditor createAuditor waiting',
    'audit/log-sink FileSink waiting',
    'audit/webhook-sink WebhookSink waiting',
  ],
  'it holds connections, streams and their waiters, which are limited, and no text of theirs is a key': [
    'http/listen socketsOf sockets',
    'http/listen listenTLS sessions',
    'http/open-watches OpenWatches open',
    'http/open-watches OpenWatches ofSession',
    'http/wheel Wheel slots',
    'kapis/watch/watches Watches open',
    'kapis/watch/watches Watches channels',
    'kapis/watch/watches Watches pending',
    'kube/store Store waiting',
    'kube/synced Synced waiting',
    'kube/wire/connections Connections all',
    'kube/wire/connections Connections free',
    'kube/wire/connections Connections waiting',
  ],
  'it lives as long as one request, response, document or task': [
    'config/yaml unresolvedAlias anchors',
    'describe/components Components schemas',
    'describe/schemas ownSchemas pending',
    'describe/schemas ownSchemas seen',
    'describe/writer Writer responses',
    'gateway/proxy Passage pieces',
    'audit/record AuditRecord annotations',
    'http/exchange Exchange cleanups',
    'http/exchange Exchange places',
    'http/exchange Exchange rechecks',
    'http/exchange Exchange userListeners',
    'http/pretty Indenter full',
    'http/write inBatches batch',
    'http/write inBatches together',
    'kapis/components read visible',
    'kapis/logging/pods podLister found',
    'kapis/query filtersOf filters',
    'kapis/query select selected',
    'kapis/read-through list lists',
    'kapis/selected-by followSelecting stops',
    'kapis/visible-namespaces allowedIn allowed',
    'kube/arena tidy together',
    'kube/selection orderByValue rows',
    'kube/selection make passed',
    'kube/selection makeIndex index',
    'kube/stored-object storeObject pieces',
    'kube/wire/answer whole chunks',
    'kube/wire/answer whole headers',
    'logs/loki/counts countContainers seen',
    'logs/pods/entry Best entries',
    'logs/pods/export Sizes slots',
    'logs/pods/export exportPieces all',
    'logs/pods/follow Waiting records',
    'logs/pods/follow Waiting taken',
    'logs/pods/follow followSources readings',
    'logs/pods/read Lines begun',
    'logs/pods/reasons Reasons texts',
    'logs/pods/scan Missing unreadable',
    'logs/pods/scan Missing refused',
    'logs/pods/scan Missing older',
    'logs/pods/scan Missing newer',
    'logs/query Problems causes',
    'logs/remote/store-client asked chunks',
    'logs/stores/pods podsStore containers',
    'logs/stores/pods podsStore counts',
    'oauth/body readBytes chunks',
  ],
};

/** Leaves out code that runs in a browser or for one command of one user. */
const isServer = (file: string): boolean => !/^src\/(?:describe\/docs\/browser|cli)\//.test(file);

test('a collection that may outlive a call is bounded, or its reason is given here', () => {
  const found = globSync('src/**/*.ts')
    .filter(isServer)
    .flatMap((file) =>
      collectionsIn(file, readFileSync(file, 'utf8')).map(({ owner, name }) =>
        [file.slice('src/'.length, -'.ts'.length), owner, name].filter((part) => part !== '').join(' '),
      ),
    );
  const all = Object.values(argued).flat();
  expect({
    // Make it a BoundedCache or an InProgress, or give the reason above.
    unbounded: found.filter((one) => !all.includes(one)),
    gone: all.filter((one) => !found.includes(one)),
  }).toEqual({ unbounded: [], gone: [] });
});

test.each([
  [
    'a field',
    'class A { readonly #all = new Map<string, number>(); put(k: string) { this.#all.set(k, 1); } }',
    'A all',
  ],
  [
    'a field that is made later',
    'class A { #all?: Set<string>; put(k: string) { (this.#all ??= new Set()).add(k); } }',
    'A all',
  ],
  ['a queue', 'class A { #line: string[] = []; put(k: string) { this.#line.push(k); } }', 'A line'],
  [
    'an object',
    'const known: Record<string, number> = {}; export const put = (k: string) => { known[k] = 1; };',
    'known',
  ],
  [
    'a variable of a module',
    'const all = new LRUCache<string, 1>({}); export const put = (k: string) => all.set(k, 1);',
    'all',
  ],
  [
    'a variable that a returned function keeps',
    'export function make() { const all = new Map(); return { put: (k: string) => all.set(k, 1) }; }',
    'make all',
  ],
  [
    'a variable that a listener keeps',
    'export function make(on: any) { const all = new Set(); on((k: string) => all.add(k)); }',
    'make all',
  ],
])('finds %s', (_, text, expected) => {
  expect(collectionsIn('a.ts', text).map(({ owner, name }) => `${owner} ${name}`.trim())).toEqual([expected]);
});

test.each([
  [
    'one that is used up in the call',
    'export function f(all: string[]) { const seen = new Set(); for (const one of all) seen.add(one); return seen.size; }',
  ],
  [
    'one of a callback that is called at once',
    'export function f(all: string[]) { const seen = new Set(); return all.map((one) => seen.add(one)); }',
  ],
  ['one that never changes', 'const words = new Set(["a"]); export const has = (k: string) => words.has(k);'],
])('leaves %s alone', (_, text) => {
  expect(collectionsIn('a.ts', text)).toEqual([]);
});
