/** Serves other sites that a browser visits: callbacks of clients, and pages of attackers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority } from '../../../hack/cluster/pki.ts';

/** Response of a site: HTML, or the target of a redirect. */
type Shown = string | { readonly location: string };

export interface Sites {
  /** Port of a server that responds for the host of every https address. */
  readonly port: number;
  readonly certificate: string;
  /** URL of a callback at a loopback port, as a program on the user's machine opens it. */
  readonly loopback: string;
  /** Responses, by URL without the query. For any other URL, the response is the page "You have arrived." */
  readonly pages: Map<string, Shown>;
  /** Requested URLs in order. */
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
  const responseAt =
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
  const servers = [
    createSecureServer({ cert: certificate, key }, responseAt('https')),
    createServer(responseAt('http')),
  ];
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
