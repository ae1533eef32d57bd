/** Bodies end where their headers say, whatever shape and number of objects is asked for. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ClientHttp2Session } from 'node:http2';
import { connect, Connection, open } from '../client/http1.ts';
import { connectHTTP2, openHTTP2 } from '../client/http2.ts';
import { whole, type Request, type Whole } from '../client/message.ts';
import { login, startLab, type Lab } from './lab.ts';
import { resource, serveResources } from './logging-lab.ts';

const count = 257;
const base = '/kapis/resources.platform.io/v1alpha3';

let lab: Lab;
let session: ClientHttp2Session;
let connection: Connection;
let headers: Request['headers'];

beforeAll(async () => {
  lab = await startLab({
    prepare: (cluster) => {
      serveResources(cluster, [resource('secrets', 'Secret', 'Namespaced')]);
      for (let n = 4; n <= count; n += 1) putNode(cluster, n);
      for (let n = 1; n <= count; n += 1)
        cluster.put('/api/v1/secrets', { kind: 'Secret', apiVersion: 'v1', metadata: metadataOf('s', n) });
    },
  });
  headers = { authorization: `Bearer ${String((await lab.token(login)).json()['access_token'])}` };
  session = connectHTTP2(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
  connection = new Connection(connect(plain()));
});
afterAll(async () => {
  await connection.close();
  session.close();
  await lab.stop();
});

const plain = () => ({ host: '127.0.0.1', port: lab.ports.http });
const secure = () => ({ host: '127.0.0.1', port: lab.ports.https, tls: { rejectUnauthorized: false } });

const metadataOf = (letter: string, n: number): { name: string; managedFields: object[] } => ({
  name: `${letter}${n}`,
  managedFields: [{ manager: 'test', operation: 'Update', fieldsV1: { 'f:spec': {}, 'f:metadata': {} } }],
});

function putNode(cluster: Lab['cluster'], n: number): void {
  const metadata = { ...metadataOf('n', n), annotations: { filling: 'x'.repeat(2_000) } };
  cluster.put('/api/v1/nodes', { kind: 'Node', apiVersion: 'v1', metadata, spec: {}, status: {} });
}

const ways: readonly [string, (request: Request) => Promise<Whole>][] = [
  ['HTTP/1.1', async (request) => whole(await open(connect(plain()), request))],
  ['a connection of HTTP/1.1 that is kept', async (request) => whole(await connection.request(request))],
  ['TLS', async (request) => whole(await open(connect(secure()), request))],
  ['HTTP/2', async (request) => whole(await openHTTP2(session, request))],
];

describe.each(ways)('over %s', (_, ask) => {
  describe.each(['nodes', 'secrets'])(`${count} %s`, (plural) => {
    test.each(['', 'fields=metadata.name', 'managedFields=true', 'fields=metadata&managedFields=true', 'pretty=true'])(
      'have a body that ends where its headers say, with the query %j',
      async (query) => {
        const path = `${base}/${plural}?${query}`;
        for (const coding of ['identity', 'gzip']) {
          const request = { path, headers: { ...headers, 'accept-encoding': coding } };
          const got = await ask(request);
          expect(got.status).toBe(200);
          expect((JSON.parse(got.content.toString()) as { items: object[] }).items).toHaveLength(count);
          const head = await ask({ ...request, method: 'HEAD' });
          expect(head.headers['content-length']).toBe(got.headers['content-length']);
        }
      },
    );
  });
});
