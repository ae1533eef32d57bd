import { nodeName } from '../../hack/cluster/node.ts';
import type { Job } from './job.ts';
import { pageSize, paths } from './paths.ts';
import { loginForm } from './readers.ts';
import { request, type Request } from './requests.ts';
import type { Stand } from './stand.ts';

export type Server = 'ours' | 'kube-apiserver' | 'nginx';

export interface Subject extends Job {
  readonly server: Server;
  /** As printed. */
  readonly label: string;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  readonly subjects: readonly Subject[];
}

/** Asked for what it is, on either face of ours; with TLS where the label says so, which kube-apiserver always has. */
export function casesOf(stand: Stand): Case[] {
  const { ours, kubeApiserver, nginx, nodes, users } = stand;
  const ofOurs = (label: string, target: Job['target'], requests: readonly Request[]): Subject => ({
    server: 'ours',
    label: `ours ${label}`,
    target,
    requests,
    pids: ours.pids,
  });
  const ofPeers = (ofKubeApiserver: readonly Request[], file: string, gzip = false): Subject[] => {
    const requests = [request(`/${file}`, { gzip })];
    return [
      {
        server: 'kube-apiserver',
        label: 'kube-apiserver TLS',
        target: kubeApiserver.tls,
        requests: ofKubeApiserver,
        pids: kubeApiserver.pids,
      },
      { server: 'nginx', label: 'nginx', target: nginx.plain, requests, pids: nginx.pids },
      { server: 'nginx', label: 'nginx TLS', target: nginx.tls, requests, pids: nginx.pids },
    ];
  };
  /** One request a reader; `make` is given the reader's number. */
  const byOurs = (make: (reader: number, token: string) => Request): Request[] =>
    ours.tokens.map((token, reader) => make(reader, token));
  const byPeers = (make: (reader: number, token: string) => Request): Request[] =>
    kubeApiserver.tokens.map((token, reader) => make(reader, token));

  const spread = (reader: number): number => Math.floor((reader * nodes) / ours.tokens.length);
  const name = (reader: number): string => nodeName(spread(reader));
  const pages = Math.max(1, Math.floor(nodes / pageSize));
  const page = { items: Math.min(pageSize, nodes) };
  const list = { items: nodes };
  const zipped = { items: nodes, gzip: true };
  const health = [request('/livez', { text: 'ok' })];

  const ourPages = byOurs((reader, token) => request(paths.page(1 + (reader % pages)), page, { token }));
  const ourNode = byOurs((reader, token) => request(paths.node(spread(reader)), { name: name(reader) }, { token }));
  const ourList = byOurs((_, token) => request(paths.list, list, { token }));

  return [
    {
      name: 'health',
      title: '/livez',
      subjects: [ofOurs('', ours.plain, health), ofOurs('TLS', ours.tls, health), ...ofPeers(health, 'health')],
    },
    {
      name: 'get',
      title: 'one node',
      subjects: [
        ofOurs('/kapis', ours.plain, ourNode),
        ofOurs('/kapis TLS', ours.tls, ourNode),
        ofOurs(
          '/apis TLS',
          ours.aggregated,
          byOurs((reader, token) => request(`${paths.aggregated}/${name(reader)}`, { name: name(reader) }, { token })),
        ),
        ...ofPeers(
          byPeers((reader, token) => request(`/api/v1/nodes/${name(reader)}`, { name: name(reader) }, { token })),
          'node',
        ),
      ],
    },
    {
      name: 'page',
      title: 'a page of 10; kube-apiserver: limit=10',
      subjects: [
        ofOurs('/kapis', ours.plain, ourPages),
        ofOurs('/kapis TLS', ours.tls, ourPages),
        ofOurs(
          '/apis TLS',
          ours.aggregated,
          byOurs((_, token) => request(`${paths.aggregated}?limit=${pageSize}`, page, { token })),
        ),
        ...ofPeers(
          byPeers((_, token) => request(`/api/v1/nodes?limit=${pageSize}`, page, { token })),
          'page',
        ),
      ],
    },
    {
      name: 'list',
      title: 'the full list; kube-apiserver: resourceVersion=0',
      subjects: [
        ofOurs('/kapis', ours.plain, ourList),
        ofOurs('/kapis TLS', ours.tls, ourList),
        ofOurs(
          '/apis TLS',
          ours.aggregated,
          byOurs((_, token) => request(`${paths.aggregated}?resourceVersion=0`, list, { token })),
        ),
        ...ofPeers(
          byPeers((_, token) => request('/api/v1/nodes?resourceVersion=0', list, { token })),
          'list',
        ),
      ],
    },
    {
      name: 'gzip',
      title: 'the full list, gzip; kube-apiserver: resourceVersion=0; nginx: gzipped beforehand',
      subjects: [
        ofOurs(
          '/kapis',
          ours.plain,
          byOurs((_, token) => request(paths.list, zipped, { token })),
        ),
        ofOurs(
          '/apis TLS',
          ours.aggregated,
          byOurs((_, token) => request(`${paths.aggregated}?resourceVersion=0`, zipped, { token })),
        ),
        ...ofPeers(
          byPeers((_, token) => request('/api/v1/nodes?resourceVersion=0', zipped, { token })),
          'list',
          true,
        ),
      ],
    },
    {
      name: 'token',
      title: 'a token by the password grant',
      subjects: [
        ofOurs(
          '/oauth/token',
          ours.plain,
          users.readers.map((user) => request('/oauth/token', { text: '"access_token"' }, { form: loginForm(user) })),
        ),
      ],
    },
  ];
}
