/**
 * Checks that every collection that outlives a call and can grow is bounded by `BoundedCache` or `InProgress`
 * (src/runtime/bounded-cache.ts). Exceptions are listed below with a reason, for example that requests do not
 * choose the keys of the collection.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { collectionsIn } from './collections.ts';

/**
 * Collections that are allowed without a bound, grouped by reason. An entry contains a path below src/ without
 * `.ts`, the class or function (empty for a module), and the name of the collection.
 */
const argued: Readonly<Record<string, readonly string[]>> = {
  'it implements the bounded collections': [
    'runtime/bounded-cache all',
    'runtime/bounded-cache BoundedCache cache',
    'runtime/bounded-cache InProgress values',
  ],
  'its keys are names or uids of cluster objects, so it is no larger than the cluster': [
    'accounts/directory/account-index AccountIndex all',
    'accounts/logins/limit LoginLimiter peers',
    'runtime/name-index NameIndex names',
    'accounts/directory/user-conditions UserConditions waiting',
    'accounts/directory/user-conditions UserConditions sharing',
    'accounts/directory/users Users names',
    'docs/custom-resources CustomResourceDocuments cached',
    'cluster/catalogue/catalogue Catalogue caches',
    'cluster/catalogue/catalogue Catalogue refused',
    'cluster/catalogue/granted-namespaces GrantedNamespaces bindings',
    'cluster/catalogue/granted-namespaces GrantedNamespaces bySubject',
    'cluster/catalogue/granted-namespaces GrantedNamespaces copies',
    'apimachinery/namespace-access NamespaceAccess decisions',
    'apimachinery/namespace-access NamespaceAccess inFlight',
    'cluster/cache/arena Arena plain',
    'cluster/cache/arena Arena packed',
    'cluster/cache/past-versions PastVersions plain',
    'cluster/cache/slab Slab tenants',
    'cluster/discovery Discovery read',
    'cluster/discovery Discovery revisions',
    'cluster/cache/history History changes',
    'cluster/cache/history History gaps',
    'cluster/cache/informer Informer objects',
    'cluster/own-rights OwnRights reviews',
    'cluster/cache/store Store objects',
  ],
  'its keys are strings from cluster objects, and their total length is limited': [
    'cluster/cache/managed-fields ManagedFields templates',
    'cluster/cache/managed-fields ManagedFields texts',
    'cluster/cache/shared-strings SharedStrings strings',
  ],
  'its keys are names in the configuration, or it follows the configuration': [
    'accounts/directory/directory Directory parameters',
    'accounts/providers/identity-providers IdentityProviders created',
    'accounts/providers/identity-providers IdentityProviders failures',
    'accounts/providers/identity-providers IdentityProviders slots',
    'accounts/providers/password-providers find failures',
    'accounts/passwords/passwords Passwords costs',
    'cluster/secret-refs SecretRefs informers',
    'config/live LiveConfiguration warnings',
  ],
  'its keys are usernames and uids of existing accounts, and their number is limited': [
    'cluster/write-behind WriteBehind waiting',
  ],
  'its keys are constants of the source code': [
    'runtime/lifecycle Lifecycle components',
    'runtime/lifecycle Lifecycle started',
    'http/listeners/listeners Listeners open',
    'resources/apis-views Views views',
    'resources/apis-views Views prepared',
    'apimachinery/list/resource-responses ResourceResponses prepared',
  ],
  'its keys are three names and label keys of at most 317 characters, at most 32 in total': [
    'cluster/cache/indexes Indexes indexes',
  ],
  'it holds at most 200 records, for a few milliseconds': ['http/records waiting'],
  'its keys are at most 16 numbers': ['cluster/cache/stored-object StoredObject memo'],
  'it holds at most 1,000 documents or 4,000 other responses, and cuts off the oldest beyond that': [
    'http/unread-responses UnreadResponses byNetwork',
  ],
  'it holds the two states of one change': ['apimachinery/watch/watch Watch verdicts'],
  'its entries and the length of their keys are limited': [
    'http/filters/routing routing cached',
    'http/filters/routing routing requestedOnce',
  ],
  'its number of entries is limited': ['runtime/metrics/labels first known', 'runtime/metrics/labels registered known'],
  'it is filled when the server starts': [
    'http/router createMatch unmatched',
    'runtime/lifecycle Topic listeners',
    'cluster/catalogue/catalogue Catalogue permanent',
    'cluster/cache/informer Informer listeners',
    'cluster/cache/store Store listeners',
  ],
  'it holds audit events, whose total size is limited': [
    'audit/auditor createAuditor waiting',
    'audit/log-sink FileSink waiting',
    'audit/webhook-sink WebhookSink waiting',
  ],
  'it holds connections, streams and their waiters, whose number is limited, and no client text is a key': [
    'http/listeners/listen Sockets open',
    'http/listeners/listen listenTLS sessions',
    'http/listeners/listen closeStreamless streams',
    'http/open-streams OpenStreams open',
    'http/open-streams OpenStreams bySession',
    'runtime/wheel Wheel slots',
    'apimachinery/watch/watches Watches open',
    'apimachinery/watch/watches Watches channels',
    'apimachinery/watch/watches Watches pending',
    'apimachinery/watch/watches Watches arrivals',
    'cluster/cache/store Store waiting',
    'cluster/cache/synced Synced waiting',
    'cluster/wire/connections Connections all',
    'cluster/wire/connections Connections idle',
    'cluster/wire/connections Connections waiting',
  ],
  'it lives as long as one request, response, document or task': [
    'cluster/field-schemas fieldsOf byName',
    'config/yaml unresolvedAlias anchors',
    'docs/openapi/components Components schemas',
    'docs/openapi/cluster-schemas ownSchemas pending',
    'docs/openapi/cluster-schemas ownSchemas seen',
    'docs/openapi/writer Writer responses',
    'gateway/proxy ResponseForwarder pieces',
    'audit/record AuditRecord annotations',
    'http/exchange Exchange annotations',
    'http/exchange Exchange cleanups',
    'http/exchange Exchange releases',
    'http/exchange Exchange records',
    'http/exchange Exchange rechecks',
    'http/exchange Exchange userListeners',
    'http/response/blocks Blocks full',
    'http/response/yaml YAMLFormatter open',
    'http/response/yaml YAMLFormatter text',
    'http/response/write inBatches batch',
    'http/response/write inBatches smallPieces',
    'resources/components read visible',
    'logs/pod-lister podLister found',
    'apimachinery/list/query select selected',
    'resources/selected-by followSelecting stops',
    'runtime/promises mapConcurrent results',
    'cluster/cache/arena tidy batch',
    'cluster/cache/indexes build index',
    'cluster/cache/informer replace present',
    'cluster/cache/json-scan readList items',
    'cluster/cache/selection orderByValue rows',
    'cluster/cache/selection make passed',
    'cluster/cache/stored-object storeObject pieces',
    'cluster/wire/response Body pieces',
    'cluster/wire/response whole chunks',
    'cluster/wire/response whole headers',
    'logs/stores/loki/counts countContainers seen',
    'logs/stores/pods/entry FirstEntries entries',
    'logs/stores/pods/export Sizes slots',
    'logs/stores/pods/export exportPieces all',
    'logs/stores/pods/follow RecordBuffer records',
    'logs/stores/pods/follow RecordBuffer writers',
    'logs/stores/pods/follow Follower readings',
    'logs/stores/pods/read Lines pieces',
    'logs/stores/log-store Reasons texts',
    'logs/stores/pods/scan IncompleteLogs unreadable',
    'logs/stores/pods/scan IncompleteLogs refused',
    'logs/stores/pods/scan IncompleteLogs older',
    'logs/stores/pods/scan IncompleteLogs newer',
    'logs/stores/pods/store statistics containers',
    'logs/stores/pods/store histogram counts',
    'http/request/slow-body readBytes chunks',
  ],
};

/** Reports whether the file is part of the server, not of the code for browsers or the command line. */
const isServer = (file: string): boolean => !/^src\/(?:docs\/explorer\/browser|cli)\//.test(file);

// evidence: bounded-collections
test('a collection that can outlive a call is bounded, or listed in this test with a reason', () => {
  const found = globSync('src/**/*.ts')
    .filter(isServer)
    .flatMap((file) =>
      collectionsIn(file, readFileSync(file, 'utf8')).map(({ owner, name }) =>
        [file.slice('src/'.length, -'.ts'.length), owner, name].filter((part) => part !== '').join(' '),
      ),
    );
  const all = Object.values(argued).flat();
  expect({
    // Use `BoundedCache` or `InProgress` for these collections, or add them to `argued` with a reason.
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
    'a field that is created later',
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
    'a variable that a returned function captures',
    'export function make() { const all = new Map(); return { put: (k: string) => all.set(k, 1) }; }',
    'make all',
  ],
  [
    'a variable that a listener captures',
    'export function make(on: any) { const all = new Set(); on((k: string) => all.add(k)); }',
    'make all',
  ],
])('the check for unbounded collections finds %s', (_, text, expected) => {
  expect(collectionsIn('a.ts', text).map(({ owner, name }) => `${owner} ${name}`.trim())).toEqual([expected]);
});

test.each([
  [
    'a collection that does not outlive the call',
    'export function f(all: string[]) { const seen = new Set(); for (const one of all) seen.add(one); return seen.size; }',
  ],
  [
    'a collection in a callback that is called at once',
    'export function f(all: string[]) { const seen = new Set(); return all.map((one) => seen.add(one)); }',
  ],
  ['a collection that never changes', 'const words = new Set(["a"]); export const has = (k: string) => words.has(k);'],
])('the check for unbounded collections ignores %s', (_, text) => {
  expect(collectionsIn('a.ts', text)).toEqual([]);
});
