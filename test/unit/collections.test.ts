/**
 * Collections that outlive a call and grow are bounded: each is a BoundedCache or an InProgress (src/runtime/bounded-cache.ts), or in this list
 * with the reason why no request chooses its keys, or why it cannot grow.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { collectionsIn } from './collections.ts';

/** By reason. Each is a path below src/ without `.ts`, the class or function (nothing for a module), and the name. */
const argued: Readonly<Record<string, readonly string[]>> = {
  'it is the implementation of the bounded ones': [
    'runtime/bounded-cache all',
    'runtime/bounded-cache BoundedCache cache',
    'runtime/bounded-cache InProgress values',
  ],
  'its keys are names or uids of objects in the cluster, and it holds no more than there are': [
    'accounts/directory/account-index AccountIndex all',
    'accounts/directory/account-index AccountIndex names',
    'accounts/logins/limit LoginLimiter peers',
    'tokens/sessions/session-store SessionStore ofUser',
    'accounts/directory/user-conditions UserConditions waiting',
    'accounts/directory/user-conditions UserConditions sharing',
    'accounts/directory/users Users names',
    'docs/custom-resources CustomResourceDocuments known',
    'cluster/catalogue/catalogue Catalogue copies',
    'cluster/catalogue/catalogue Catalogue refused',
    'cluster/catalogue/granted-namespaces GrantedNamespaces bindings',
    'cluster/catalogue/granted-namespaces GrantedNamespaces bySubject',
    'cluster/cache/arena SharedSlab tenants',
    'cluster/cache/arena Arena slabs',
    'cluster/cache/arena Arena fresh',
    'cluster/discovery Discovery read',
    'cluster/discovery Discovery revisions',
    'cluster/cache/history History changes',
    'cluster/cache/informer Informer objects',
    'cluster/own-rights OwnRights answers',
    'cluster/cache/reflector Reflector initialItems',
    'cluster/cache/store Store objects',
  ],
  'its keys are texts of objects in the cluster, and their characters are limited': [
    'cluster/cache/managed-fields ManagedFields known',
  ],
  'its keys are names in the configuration, or it follows the configuration': [
    'accounts/directory/directory Directory parameters',
    'accounts/providers/identity-providers IdentityProviders created',
    'accounts/providers/identity-providers IdentityProviders slots',
    'accounts/providers/password-providers find failures',
    'accounts/passwords/passwords Passwords decoys',
    'accounts/passwords/passwords Passwords costs',
    'cluster/secret-refs SecretRefs informers',
    'config/live LiveConfiguration warnings',
  ],
  'its keys are usernames and uids of accounts that exist, and their number is limited': [
    'cluster/write-behind WriteBehind waiting',
  ],
  'its keys are a few that the source code names': [
    'runtime/lifecycle Lifecycle components',
    'runtime/lifecycle Lifecycle started',
    'http/listeners/listeners Listeners open',
    'resources/apis-views Views views',
    'resources/apis-views Views prepared',
    'apimachinery/list/resource-responses ResourceResponses prepared',
  ],
  'its keys are three names and label keys of at most 317 characters, 32 in all': [
    'cluster/cache/selection Selections indexes',
  ],
  'its keys are numbers, 16 at most': ['cluster/cache/stored-object StoredObject remembered'],
  'it holds 1,000 documents or 4,000 other responses, and cuts one for each beyond': [
    'http/unread-responses UnreadResponses byNetwork',
  ],
  'it holds the two states of one change': ['apimachinery/watch/watch Watch verdicts'],
  'it is filled when the server starts': [
    'http/router createMatch unmatched',
    'runtime/metrics knownResources',
    'runtime/lifecycle Topic listeners',
    'cluster/catalogue/catalogue Catalogue kept',
    'cluster/cache/informer Informer listeners',
    'cluster/cache/store Store listeners',
  ],
  'it holds audit events, and their bytes are limited': [
    'audit/auditor createAuditor waiting',
    'audit/log-sink FileSink waiting',
    'audit/webhook-sink WebhookSink waiting',
  ],
  'it holds connections, streams and their waiters, which are limited, and no text of theirs is a key': [
    'http/listeners/listen socketsOf sockets',
    'http/listeners/listen listenTLS sessions',
    'http/listeners/listen closeStreamless streams',
    'http/open-streams OpenStreams open',
    'http/open-streams OpenStreams ofSession',
    'runtime/wheel Wheel slots',
    'apimachinery/watch/watches Watches open',
    'apimachinery/watch/watches Watches channels',
    'apimachinery/watch/watches Watches pending',
    'cluster/cache/store Store waiting',
    'cluster/cache/synced Synced waiting',
    'cluster/wire/connections Connections all',
    'cluster/wire/connections Connections free',
    'cluster/wire/connections Connections waiting',
  ],
  'it lives as long as one request, response, document or task': [
    'config/yaml unresolvedAlias anchors',
    'docs/openapi/components Components schemas',
    'docs/openapi/cluster-schemas ownSchemas pending',
    'docs/openapi/cluster-schemas ownSchemas seen',
    'docs/openapi/writer Writer responses',
    'gateway/proxy Passage pieces',
    'audit/record AuditRecord annotations',
    'http/exchange Exchange cleanups',
    'http/exchange Exchange places',
    'http/exchange Exchange rechecks',
    'http/exchange Exchange userListeners',
    'http/response/pretty Indenter full',
    'http/response/write inBatches batch',
    'http/response/write inBatches together',
    'resources/components read visible',
    'logs/pod-lister podLister found',
    'apimachinery/list/query select selected',
    'resources/selected-by followSelecting stops',
    'runtime/promises mapConcurrent results',
    'cluster/cache/arena tidy together',
    'cluster/cache/selection orderByValue rows',
    'cluster/cache/selection make passed',
    'cluster/cache/selection makeIndex index',
    'cluster/cache/stored-object storeObject pieces',
    'cluster/wire/response whole chunks',
    'cluster/wire/response whole headers',
    'logs/stores/loki/counts countContainers seen',
    'logs/stores/pods/entry Best entries',
    'logs/stores/pods/export Sizes slots',
    'logs/stores/pods/export exportPieces all',
    'logs/stores/pods/follow Waiting records',
    'logs/stores/pods/follow Waiting taken',
    'logs/stores/pods/follow Follower readings',
    'logs/stores/pods/read Lines begun',
    'logs/stores/log-store Reasons texts',
    'logs/stores/pods/scan Missing unreadable',
    'logs/stores/pods/scan Missing refused',
    'logs/stores/pods/scan Missing older',
    'logs/stores/pods/scan Missing newer',
    'logs/stores/pods/store statistics containers',
    'logs/stores/pods/store histogram counts',
    'http/request/slow-body readBytes chunks',
  ],
};

/** Leaves out code that runs in a browser or for one command of one user. */
const isServer = (file: string): boolean => !/^src\/(?:docs\/explorer\/browser|cli)\//.test(file);

// evidence: bounded-collections
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
