/**
 * Client certificates of the front proxy with intermediates: on open connections, and when the request-header CA
 * changes.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect, Connection } from '../client/http1.ts';
import { connectHTTP2, openHTTP2 } from '../client/http2.ts';
import { whole } from '../client/message.ts';
import { goodAuthority, goodLeaf, makeChain, type Chain } from '../fakes/certificate-chains.ts';
import { nodes, startLab, type Lab } from '../labs/conformance/lab.ts';

const configMaps = '/api/v1/namespaces/kube-system/configmaps';
const name = 'extension-apiserver-authentication';
const headers = { 'x-remote-user': 'alice' };

/** Returns a leaf certificate with two intermediates. */
const newChain = (): Promise<Chain> =>
  makeChain({
    commonName: 'front-proxy-client',
    links: [goodLeaf, goodAuthority, goodAuthority, goodAuthority],
    trusted: [false, false, false, true],
    presented: [1, 2],
  });

let lab: Lab;
let chain: Chain;
let other: Chain;
beforeAll(async () => {
  [lab, chain, other] = await Promise.all([startLab(), newChain(), newChain()]);
});
afterAll(() => lab.stop());

/** Updates the ConfigMap, and returns once the change is in effect. */
async function trust(authorities: readonly string[], allowedNames = ['front-proxy-client']): Promise<void> {
  const { data } = lab.cluster.get(configMaps, name) as unknown as { data: Record<string, string> };
  lab.cluster.put(configMaps, {
    metadata: { name },
    data: {
      ...data,
      'requestheader-client-ca-file': authorities.join(''),
      'requestheader-allowed-names': JSON.stringify(allowedNames),
    },
  });
  await new Promise((resolve) => setImmediate(resolve));
}

const tls = ({ presented, key }: Chain): { cert: string; key: string; rejectUnauthorized: false } => ({
  cert: presented.join(''),
  key,
  rejectUnauthorized: false,
});

type Send = () => Promise<number>;

/** Opens one connection of each HTTP version. */
function connections(shown: Chain): { readonly requests: readonly Send[]; readonly close: () => Promise<void> } {
  const { host, port } = { host: '127.0.0.1', port: lab.ports.aggregated };
  const connection = new Connection(connect({ host, port, tls: tls(shown) }));
  const session = connectHTTP2(`https://${host}:${port}`, tls(shown));
  const request = { path: nodes, headers };
  return {
    requests: [
      async () => (await whole(await connection.request(request))).status,
      async () => (await whole(await openHTTP2(session, request))).status,
    ],
    close: async () => {
      session.close();
      await connection.close();
    },
  };
}

test('an open connection is authenticated only while its certificate chain leads to the current request-header CA', async () => {
  await trust(chain.authorities);
  const { requests, close } = connections(chain);
  const statuses = (): Promise<number[]> => Promise.all(requests.map((send) => send()));
  try {
    expect(await statuses()).toEqual([200, 200]);
    await trust([...chain.authorities, ...other.authorities]);
    expect(await statuses()).toEqual([200, 200]);
    await trust(other.authorities);
    expect(await statuses()).toEqual([401, 401]);
    await trust(chain.authorities);
    expect(await statuses()).toEqual([200, 200]);
    await trust(chain.authorities, ['somebody-else']);
    expect(await statuses()).toEqual([401, 401]);
  } finally {
    await close();
  }
});

test.each<[string, Partial<typeof goodAuthority>]>([
  ['is not a CA', { isCA: false, keyUsage: 'none' }],
  ['is not allowed to sign', { keyUsage: 'other' }],
  ['has expired', { validity: 'past' }],
  ['is only for servers', { usage: 'server' }],
])('a certificate chain whose intermediate certificate %s is rejected', async (_, fault) => {
  const bad = await makeChain({
    commonName: 'front-proxy-client',
    links: [goodLeaf, { ...goodAuthority, ...fault }, goodAuthority],
    trusted: [false, false, true],
    presented: [1],
  });
  await trust(bad.authorities);
  const { requests, close } = connections(bad);
  try {
    for (const send of requests) expect(await send()).toBe(401);
  } finally {
    await close();
  }
});
