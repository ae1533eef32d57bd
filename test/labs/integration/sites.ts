/** Servers of others that a browser goes to: the callbacks of clients, and pages that mean ill. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority } from '../../../hack/cluster/pki.ts';

/** HTML, or where the browser is sent on. */
type Shown = string | { readonly location: string };

export interface Sites {
  /** Where a server answers for the host of every https address. */
  readonly port: number;
  readonly certificate: string;
  /** A callback at a port of its own, as a program on the machine of the user opens one. */
  readonly loopback: string;
  /** By address, without the query; everything else is a page that says so. */
  readonly pages: Map<string, Shown>;
  /** What was asked for, in its order. */
  readonly visits: URL[];
  readonly stop: () => Promise<void>;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export async function startSites(hosts: readonly string[]): Promise<Sites> {
  const pages = new Map<string, Shown>();
  const visits: URL[] = [];
  const answerAt =
    (scheme: string): RequestListener =>
    ({ headers: { host = '' }, url = '' }: IncomingMessage, res) => {
      const address = new URL(`${scheme}://${host}${url}`);
      visits.push(address);
      const shown = pages.get(`${address.origin}${address.pathname}`) ?? '<p>You have arrived.</p>';
      if (typeof shown === 'object') res.writeHead(302, { location: shown.location }).end();
      else
        res.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Another site</title>${shown}`);
    };
  const authority = await createAuthority('sites');
  const { certificate, key } = await authority.issue({ commonName: 'sites', server: hosts });
  const servers = [createSecureServer({ cert: certificate, key }, answerAt('https')), createServer(answerAt('http'))];
  const [port = 0, loopback = 0] = await Promise.all(servers.map(listen));
  return {
    port,
    certificate,
    loopback: `http://127.0.0.1:${loopback}/callback`,
    pages,
    visits,
    stop: async () => {
      await Promise.all(
        servers.map((server) => {
          server.closeAllConnections();
          return once(server.close(), 'close');
        }),
      );
    },
  };
}
