import { nodeName } from '../../hack/cluster/node.ts';
import type { Target } from './connection.ts';
import { concurrency, loginSeconds, roundSeconds, type Job } from './job.ts';
import { createdAt, podNamespace, podsPerNamespace, rackLabel, racks } from './objects.ts';
import { placeholder, pageSize, paths } from './paths.ts';
import { callers, loginForm, readerAccount } from './readers.ts';
import { request, type Expected, type Request } from './requests.ts';
import type { Face, Site } from './site.ts';
import type { Stand } from './stand.ts';

export type Server = 'ours' | 'ours, few nodes' | 'kube-apiserver' | 'nginx' | 'node:http' | 'raw hash';

export interface Subject {
  readonly server: Server;
  /** Label in the output. */
  readonly label: string;
  /** Job of the load generator; undefined for the raw hash. */
  readonly job?: Job;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  readonly subjects: readonly Subject[];
  /**
   * Request that gets status 200 once our server is ready for the case. The server caches pods only after the first
   * request for pods.
   */
  readonly first?: { readonly target: Target; readonly text: string };
  /** Number of filter terms per object, if any. */
  readonly terms?: number;
  /** True if nothing changes during the case, because the case is not about cached objects. */
  readonly quiet?: boolean;
}

/** Labels of the subjects. Other modules find the results of a subject by its label. */
export const labels = {
  plain: 'ours /kapis',
  tls: 'ours /kapis TLS',
  aggregated: 'ours /apis TLS',
  first: 'ours /kapis, new query',
  again: 'ours /kapis, repeated query',
  few: 'ours /kapis, few nodes',
  all: 'ours /kapis, all namespaces',
  cached: 'kube-apiserver TLS, resourceVersion=0',
  latest: 'kube-apiserver TLS, the latest',
  nginx: 'nginx',
  nginxTLS: 'nginx TLS',
  bare: 'node:http',
  gateway: 'ours /api',
  gatewayTLS: 'ours /api TLS',
  login: 'ours /oauth/token',
  hash: 'raw hash',
} as const;

const titles = {
  list: 'the full list',
  gzip: 'the full list, gzip (nginx: gzipped beforehand)',
  get: 'one node',
  page: `a page of ${pageSize} by name, different for each caller`,
  created: `a page of ${pageSize} by creation time, newest first, different for each caller`,
  label: `the first ${pageSize} of those with a label, a different value for each caller`,
  end: `a page of ${pageSize} by name, near the end`,
  namespace: `the first ${pageSize} pods of a namespace, different for each caller`,
  contains: 'filter: the name contains',
  in: 'filter: a label in a set',
  notin: 'filter: a label not in a set',
  exists: 'filter: one label exists and another does not',
  field: 'filter: a field selector over a path',
  sorted: 'order: by a path, with a filter',
  health: '/livez',
  latest: 'one node through /apis, at the latest revision',
  gateway: 'one ServiceAccount through the gateway',
  'gateway-alone': 'one ServiceAccount through the gateway, one request at a time',
  'gateway-node': 'one node through the gateway',
  'gateway-list': 'the full list through the gateway',
  token: 'a token by the password grant (raw hash: password verification only)',
} as const;

type Name = keyof typeof titles;

export const caseNames = Object.keys(titles);
/** Cases that run only if the user names them, because these cases do not measure reads. */
export const furtherNames: readonly string[] = ['health', 'latest', 'token'] satisfies Name[];

/** Returns the path and the expected response of the request of the caller with this number. */
type RequestFactory = (caller: number) => readonly [path: string, expected: Expected];

/** Response of half a kilobyte that differs for each caller. */
const getSmall: RequestFactory = (caller) => {
  const name = readerAccount(caller);
  return [paths.serviceAccount(name), { name }];
};

// Number of concurrent lists. A list takes long, so more lists than cores would only wait.
const listConcurrency = 4;

const health: RequestFactory = () => [paths.health, { text: 'ok' }];

export function casesOf(stand: Stand): Case[] {
  const { site, small, nginx, bare, users } = stand;
  const { ours, kubeApiserver, etcd, size } = site;
  const { nodes, pods } = size;
  const everything = namesOf(nodes);

  const jobOf = (job: Omit<Job, 'changes' | 'concurrency' | 'seconds'> & Partial<Job>): Job => ({
    changes: stand.changes.file,
    concurrency,
    seconds: roundSeconds,
    ...job,
  });
  const requests = (tokens: readonly string[], requestFor: RequestFactory): Request[] =>
    tokens.map((token, caller) => request(...requestFor(caller), { token }));
  const ofSite = (
    of: Site,
    face: Face,
    requestFor: RequestFactory,
  ): Pick<Job, 'target' | 'requests' | 'pids' | 'behind'> => ({
    target: of.ours[face],
    requests: requests(of.ours.tokens[face], requestFor),
    pids: of.ours.pids,
    behind: [...of.kubeApiserver.pids, ...of.etcd.pids],
  });
  const ofOurs = (face: Face, requestFor: RequestFactory, label: string = labels[face]): Subject => ({
    server: 'ours',
    label,
    job: jobOf(ofSite(site, face, requestFor)),
  });
  const ofFew = (requestFor: RequestFactory): Subject => ({
    server: 'ours, few nodes',
    label: labels.few,
    job: jobOf({ ...ofSite(small, 'plain', requestFor), behind: [], changes: stand.smallChanges.file }),
  });
  const ofKubeApiserver = (label: string, requestFor: RequestFactory): Subject => ({
    server: 'kube-apiserver',
    label,
    job: jobOf({
      target: kubeApiserver.tls,
      requests: requests(kubeApiserver.tokens, requestFor),
      pids: kubeApiserver.pids,
      behind: etcd.pids,
    }),
  });
  const ofNginx = (file: string, gzip = false): Subject[] =>
    (['plain', 'tls'] as const).map((face) => {
      const expected = { gzip, bytes: nginx.sizes[gzip ? `${file}.gz` : file] ?? 0 };
      return {
        server: 'nginx',
        label: face === 'tls' ? labels.nginxTLS : labels.nginx,
        job: jobOf({
          target: nginx[face],
          requests: requests(kubeApiserver.tokens, () => [`/${file}`, expected]),
          pids: nginx.pids,
          behind: kubeApiserver.pids,
        }),
      };
    });
  const ofBare = (): Subject => ({
    server: 'node:http',
    label: labels.bare,
    job: jobOf({
      target: bare.plain,
      requests: requests(kubeApiserver.tokens, () => ['/', { bytes: nginx.sizes['node'] ?? 0 }]),
      pids: bare.pids,
      behind: kubeApiserver.pids,
    }),
  });

  const get: RequestFactory = (caller) => {
    const index = Math.floor((caller * nodes) / callers);
    return [paths.node(index), { name: nodeName(index) }];
  };
  const getIn =
    (collection: string, query: string): RequestFactory =>
    (caller) => {
      const index = Math.floor((caller * nodes) / callers);
      return [`${collection}/${nodeName(index)}${query}`, { name: nodeName(index) }];
    };
  const list = (path: string, gzip: boolean): RequestFactory => {
    const expected = { items: nodes, gzip };
    return () => [path, expected];
  };
  const cached = '?resourceVersion=0';
  const lists = (name: Name, gzip: boolean): Case => {
    const subjects = [
      ofOurs('plain', list(paths.list, gzip)),
      ofOurs('tls', list(paths.list, gzip)),
      ...(gzip ? [] : [ofOurs('aggregated', list(`${paths.aggregated}${cached}`, gzip))]),
      ofKubeApiserver(labels.cached, list(`${paths.core}${cached}`, gzip)),
      ...(gzip ? [] : [ofKubeApiserver(labels.latest, list(paths.core, gzip))]),
      ...ofNginx('list', gzip),
    ];
    return make(
      name,
      subjects.map(({ job, ...rest }) => ({ ...rest, ...(job && { job: { ...job, concurrency: listConcurrency } }) })),
    );
  };

  const throughGateway = (name: Name, requestFor: RequestFactory, atOnce: number): Case => ({
    ...make(
      name,
      [
        ofOurs('plain', requestFor, labels.gateway),
        ofOurs('tls', requestFor, labels.gatewayTLS),
        ofKubeApiserver(labels.latest, requestFor),
      ].map(({ job, ...rest }) => ({ ...rest, ...(job && { job: { ...job, concurrency: atOnce } }) })),
    ),
    quiet: true,
  });

  const corePage: RequestFactory = () => [`${paths.core}?limit=${pageSize}`, { names: everything.slice(0, pageSize) }];
  const rack = (caller: number, count: number): readonly [selector: string, names: string[]] => {
    const value = caller % racks(count);
    return [`${rackLabel}=rack-${value}`, namesOf(count, (index) => index % racks(count) === value)];
  };
  const ofRack =
    (count: number): RequestFactory =>
    (caller) => {
      const [labelSelector, names] = rack(caller, count);
      return [paths.page(1, { labelSelector }), { total: names.length, names: names.slice(0, pageSize) }];
    };
  const coreRack: RequestFactory = (caller) => {
    const [selector, names] = rack(caller, nodes);
    return [paths.corePage(selector), { names: names.slice(0, pageSize) }];
  };
  const lastPage = Math.max(1, Math.floor(nodes / pageSize));
  const end: RequestFactory = (caller) => {
    const page = Math.max(1, lastPage - (caller % pageSize));
    const names = everything.slice((page - 1) * pageSize, page * pageSize);
    return [paths.page(page), { total: nodes, names }];
  };
  const podsIn =
    (path: (namespace: string) => string): RequestFactory =>
    (caller) => [path(podNamespace((caller * podsPerNamespace) % pods)), { items: Math.min(pageSize, pods) }];

  /**
   * Creates two cases of a filter: one with a value that no request had before, and one with a constant value.
   * kube-apiserver supports only label selectors.
   */
  const filter = (
    name: Name,
    terms: number,
    parameters: (value: string) => Record<string, string>,
    found: Expected,
  ) => {
    const send =
      (value: string): RequestFactory =>
      () => [paths.page(1, parameters(value)), found];
    const { labelSelector } = parameters(placeholder);
    const { names = [] } = found;
    return make(
      name,
      [
        ofOurs('plain', send(placeholder), labels.first),
        ofOurs('plain', send('0'), labels.again),
        ...(labelSelector === undefined || name !== 'in'
          ? []
          : [ofKubeApiserver(labels.latest, () => [paths.corePage(labelSelector), { names }])]),
      ],
      terms,
    );
  };
  const zone = 'topology.kubernetes.io/zone';
  const worker = 'node-role.kubernetes.io/worker';
  const version = 'status.nodeInfo.kubeletVersion';
  const byVersion = [3, 1, 2, 0].flatMap((of) => namesOf(nodes, (index) => index % 4 === of)); // Sorted by version: v1.34.9, v1.35.6, …

  return [
    lists('list', false),
    lists('gzip', true),
    make('get', [
      ofOurs('plain', get),
      ofOurs('tls', get),
      ofOurs('aggregated', getIn(paths.aggregated, cached)),
      ofKubeApiserver(labels.cached, getIn(paths.core, cached)),
      ofKubeApiserver(labels.latest, getIn(paths.core, '')),
      ...ofNginx('node'),
      ofBare(),
    ]),
    make('page', [
      ofOurs('plain', pagesOf(everything)),
      ofFew(pagesOf(namesOf(few(small)))),
      ofOurs('tls', pagesOf(everything)),
      ofKubeApiserver(labels.latest, corePage),
      ...ofNginx('page'),
    ]),
    make('created', [
      ofOurs('plain', pagesOf(newest(nodes), byCreation)),
      ofFew(pagesOf(newest(few(small)), byCreation)),
    ]),
    make('label', [
      ofOurs('plain', ofRack(nodes)),
      ofFew(ofRack(few(small))),
      ofKubeApiserver(labels.latest, coreRack),
    ]),
    make('end', [ofOurs('plain', end)]),
    ...(pods > 0
      ? [
          {
            ...make('namespace', [
              ofOurs('plain', podsIn(paths.podsOf)),
              ofKubeApiserver(labels.latest, podsIn(paths.corePodsOf)),
            ]),
            first: {
              target: ours.plain,
              text: request(paths.podsOf(podNamespace(0)), {}, { token: ours.tokens.plain[0] }).text,
            },
          },
        ]
      : []),
    make(
      'contains',
      [
        ofOurs(
          'plain',
          () => [paths.page(1, { name: placeholder }), { contains: placeholder, of: nodes }],
          labels.first,
        ),
        ofOurs('plain', () => [paths.page(1, { name: '7' }), { contains: '7', of: nodes }], labels.again),
      ],
      1,
    ),
    filter('in', 1, (value) => ({ labelSelector: `${zone} in (region-1a,x${value})` }), found(namesOf(nodes, inZone))),
    filter(
      'notin',
      1,
      (value) => ({ labelSelector: `${zone} notin (region-1a,x${value})` }),
      found(namesOf(nodes, (index) => !inZone(index))),
    ),
    filter(
      'exists',
      2,
      (value) => ({ labelSelector: `${worker},!x${value}` }),
      found(namesOf(nodes, (index) => index > 0)),
    ),
    filter('field', 1, (value) => ({ fieldSelector: `${version}!=x${value}` }), found(everything)),
    filter('sorted', 2, (value) => ({ labelSelector: `!x${value}`, sortBy: `.${version}` }), found(byVersion)),
    make('health', [
      ofOurs('plain', health),
      ofOurs('tls', health),
      ofKubeApiserver(labels.cached, health),
      ...ofNginx('health'),
    ]),
    make('latest', [
      ofOurs('aggregated', getIn(paths.aggregated, '')),
      ofKubeApiserver(labels.latest, getIn(paths.core, '')),
    ]),
    ...(
      [
        ['gateway', getSmall, concurrency],
        ['gateway-alone', getSmall, 1],
        ['gateway-node', getIn(paths.core, ''), concurrency],
        ['gateway-list', () => [paths.core, { items: nodes }], listConcurrency],
      ] as const satisfies [Name, RequestFactory, number][]
    ).map(([name, requestFor, atOnce]) => throughGateway(name, requestFor, atOnce)),
    {
      ...make('token', [
        {
          server: 'ours',
          label: labels.login,
          job: jobOf({
            target: ours.plain,
            requests: users.readers
              .slice(0, callers)
              .map((user) => request(paths.token, { text: '"access_token"' }, { form: loginForm(user) })),
            pids: ours.pids,
            behind: [...kubeApiserver.pids, ...etcd.pids],
            seconds: loginSeconds,
          }),
        },
        { server: 'raw hash', label: labels.hash },
      ]),
      quiet: true,
    },
  ];
}

const few = ({ size }: Site): number => size.nodes;

function* indexes(nodes: number): Generator<number> {
  for (let index = 0; index < nodes; index++) yield index;
}

/** Returns the names of the selected nodes in order. */
const namesOf = (nodes: number, isIncluded: (index: number) => boolean = () => true): string[] =>
  [...indexes(nodes)]
    .filter(isIncluded)
    .map((index) => nodeName(index))
    .toSorted(); // The names are ASCII, so `toSorted` sorts them as the server does.

const make = (name: Name, subjects: readonly Subject[], terms?: number): Case => ({
  name,
  title: titles[name],
  subjects,
  ...(terms === undefined ? {} : { terms }),
});

/** Returns requests for the pages of a list. `among` contains the names of all nodes in the order of the list. */
const pagesOf =
  (among: readonly string[], parameters?: Readonly<Record<string, string>>): RequestFactory =>
  (caller) => {
    const page = 1 + (caller % Math.max(1, Math.floor(among.length / pageSize)));
    const names = among.slice((page - 1) * pageSize, page * pageSize);
    return [paths.page(page, parameters), { total: among.length, names }];
  };

const byCreation = { sortBy: 'createTime', ascending: 'false' };

const newest = (count: number): string[] =>
  [...indexes(count)].toSorted((a, b) => createdAt(b) - createdAt(a)).map((index) => nodeName(index));

const found = (names: readonly string[]): Expected => ({ total: names.length, names: names.slice(0, pageSize) });

const inZone = (index: number): boolean => index % 6 === 0; // Nodes in the zone region-1a.
