import { nodeName } from '../../hack/cluster/node.ts';
import type { Job } from './job.ts';
import { pageSize, paths } from './paths.ts';
import { callers, loginForm } from './readers.ts';
import { request, type Expected, type Request } from './requests.ts';
import type { Stand } from './stand.ts';

export type Server = 'ours' | 'kube-apiserver' | 'nginx' | 'raw hash';

export interface Subject {
  readonly server: Server;
  /** As printed. */
  readonly label: string;
  /** None for the raw hash. */
  readonly job?: Job;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  readonly subjects: readonly Subject[];
}

const titles = {
  health: '/livez',
  get: 'one node, from memory (kube-apiserver, /apis: resourceVersion=0)',
  latest: 'one node, the latest there is (no resourceVersion)',
  page: `a page of ${pageSize} (kube-apiserver, /apis: limit=${pageSize}, which is always of the latest)`,
  list: 'the full list, from memory (kube-apiserver, /apis: resourceVersion=0)',
  gzip: 'the same, gzip (nginx: gzipped beforehand)',
  token: 'a token by the password grant (raw hash: the password verified, no more)',
} as const;

export const caseNames = Object.keys(titles);

type Face = keyof Stand['ours']['tokens'];
type Name = keyof typeof titles;
/** What a caller asks for, given its number. */
type Asked = (caller: number) => readonly [path: string, expected: Expected];

const faces: Readonly<Record<Face, string>> = { plain: '/kapis', tls: '/kapis TLS', aggregated: '/apis TLS' };

const health: Asked = () => [paths.health, { text: 'ok' }];
const make = (name: Name, subjects: readonly Subject[]): Case => ({ name, title: titles[name], subjects });

export function casesOf({ ours, kubeApiserver, etcd, nginx, nodes, users, changes }: Stand): Case[] {
  const requests = (tokens: readonly string[], asked: Asked): Request[] =>
    tokens.map((token, caller) => request(...asked(caller), { token }));
  const behindOurs = [...kubeApiserver.pids, ...etcd.pids];

  const ofOurs = (face: Face, asked: Asked, label = faces[face]): Subject => ({
    server: 'ours',
    label: `ours ${label}`,
    job: {
      target: ours[face],
      requests: requests(ours.tokens[face], asked),
      pids: ours.pids,
      behind: behindOurs,
      changes,
    },
  });
  const ofKubeApiserver = (asked: Asked): Subject => ({
    server: 'kube-apiserver',
    label: 'kube-apiserver TLS',
    job: {
      target: kubeApiserver.tls,
      requests: requests(kubeApiserver.tokens, asked),
      pids: kubeApiserver.pids,
      behind: etcd.pids,
      changes,
    },
  });
  const ofNginx = (file: string, gzip = false): Subject[] =>
    (['plain', 'tls'] as const).map((face) => {
      const expected = { gzip, bytes: nginx.sizes[gzip ? `${file}.gz` : file] ?? 0 };
      return {
        server: 'nginx',
        label: face === 'tls' ? 'nginx TLS' : 'nginx',
        job: {
          target: nginx[face],
          requests: requests(kubeApiserver.tokens, () => [`/${file}`, expected]),
          pids: nginx.pids,
          behind: [],
          changes,
        },
      };
    });

  const number = (caller: number): number => Math.floor((caller * nodes) / callers);
  const node = (caller: number): Expected => ({ name: nodeName(number(caller)) });
  const page = { items: Math.min(pageSize, nodes) };
  const pages = Math.max(1, Math.floor(nodes / pageSize));
  const ourNode: Asked = (caller) => [paths.node(number(caller)), node(caller)];
  const ourPage: Asked = (caller) => [paths.page(1 + (caller % pages)), page];
  /** From memory: of kube-apiserver, or of our aggregated face. */
  const nodeIn =
    (collection: string, query = '?resourceVersion=0'): Asked =>
    (caller) => [`${collection}/${nodeName(number(caller))}${query}`, node(caller)];
  const pageIn =
    (collection: string): Asked =>
    () => [`${collection}?limit=${pageSize}`, page];
  const lists = (name: Name, gzip: boolean): Case => {
    const expected = { items: nodes, gzip };
    const ourList: Asked = () => [paths.list, expected];
    const listIn =
      (collection: string): Asked =>
      () => [`${collection}?resourceVersion=0`, expected];
    return make(name, [
      ofOurs('plain', ourList),
      ofKubeApiserver(listIn(paths.core)),
      ofOurs('tls', ourList),
      ...ofNginx('list', gzip),
      ofOurs('aggregated', listIn(paths.aggregated)),
    ]);
  };

  return [
    make('health', [
      ofOurs('plain', health, 'plain'),
      ofKubeApiserver(health),
      ofOurs('tls', health, 'TLS'),
      ...ofNginx('health'),
    ]),
    make('get', [
      ofOurs('plain', ourNode),
      ofKubeApiserver(nodeIn(paths.core)),
      ofOurs('tls', ourNode),
      ...ofNginx('node'),
      ofOurs('aggregated', nodeIn(paths.aggregated)),
    ]),
    make('latest', [ofOurs('aggregated', nodeIn(paths.aggregated, '')), ofKubeApiserver(nodeIn(paths.core, ''))]),
    make('page', [
      ofOurs('plain', ourPage),
      ofKubeApiserver(pageIn(paths.core)),
      ofOurs('tls', ourPage),
      ...ofNginx('page'),
      ofOurs('aggregated', pageIn(paths.aggregated)),
    ]),
    lists('list', false),
    lists('gzip', true),
    make('token', [
      {
        server: 'ours',
        label: 'ours /oauth/token',
        job: {
          target: ours.plain,
          requests: users.readers
            .slice(0, callers)
            .map((user) => request(paths.token, { text: '"access_token"' }, { form: loginForm(user) })),
          pids: ours.pids,
          behind: behindOurs,
          changes,
        },
      },
      { server: 'raw hash', label: 'raw hash' },
    ]),
  ];
}
