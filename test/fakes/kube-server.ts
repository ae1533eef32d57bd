/** Serves an in-memory cluster on a socket, for servers in other processes. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { isKubeError } from '../../src/cluster/client/kube-error.ts';
import type { KubeRequest } from '../../src/cluster/client/client.ts';
import type { MemoryCluster } from './cluster.ts';

/** Returns the milliseconds until the response to a request of this user. The user '' is the server itself. */
export type Latency = (path: string, user: string) => number;

/** Returns true for the error of a client that has disconnected. */
const ended = (error: unknown): boolean => isKubeError(error, 0);

const numbers = new Set(['tailLines', 'limitBytes']);

/** Serves the cluster on loopback. Returns its URL. */
export async function serveCluster(cluster: MemoryCluster, latency: Latency): Promise<string> {
  const client = cluster.client();
  const server = http.createServer((req, res) => {
    handle(req, res).catch((error: unknown) => {
      if (res.headersSent || ended(error)) res.destroy();
      else res.writeHead(500).end(JSON.stringify({ message: String(error) }));
    });
  });

  async function handle(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://cluster');
    const path = decodeURIComponent(pathname);
    const gone = new AbortController();
    res.once('close', () => gone.abort(new Error('closed')));
    const sent = await buffer(req);
    const query = Object.fromEntries(
      [...searchParams].map(([name, value]) => [name, numbers.has(name) ? Number(value) : value]),
    );
    await sleep(latency(path, String(req.headers['impersonate-user'] ?? '')));
    const { status, body } = await client.stream(path, {
      method: (req.method ?? 'GET') as KubeRequest['method'],
      query,
      signal: gone.signal,
      ...(sent.length === 0 ? {} : { body: JSON.parse(sent.toString('utf8')) as unknown }),
    } as KubeRequest);
    client.requests.length = 0;
    cluster.podLogs.seen.length = 0;
    res.writeHead(status, { 'content-type': 'application/json' });
    res.flushHeaders();
    body.on('error', () => res.destroy());
    body.pipe(res);
  }

  // Keeps an idle connection open longer than the client of the tested server does, as kube-apiserver does.
  server.keepAliveTimeout = 90_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
