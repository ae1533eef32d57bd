/** A server that is the only endpoint of the chart's https port. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { release } from '../../../hack/run/chart.ts';
import { eventually } from '../integration/eventually.ts';
import { call } from '../integration/http.ts';
import { lab } from '../integration/lab.ts';
import { startExtra, type Extra } from '../integration/servers.ts';
import { apply, host, type Undo } from './routes.ts';

/** Starts a server whose ports listen on the address of the lab, because kube-apiserver rejects endpoints on loopback. */
async function start(flags: readonly string[], authority = lab().authority): Promise<Extra> {
  const { dir, address } = lab();
  const http = await freePort(12_000 + seed(dir, 6_000), address);
  const https = await freePort(http + 1, address);
  const ports = { http, https, aggregated: await freePort(https + 1, address) };
  const server = await startExtra([`--bind-address=${address}`, ...flags], ports);
  await eventually('the server is ready', async () => {
    await server.check();
    const { status } = await call(`https://${address}:${server.ports.https}/readyz`, { authority });
    if (status !== 200) throw new Error(`/readyz returned ${status}`);
  });
  return server;
}

export const startBackend = (): Promise<Extra> => start([]);

/** Starts a server with a certificate for the same names, issued by a CA that the objects of the chart do not contain. */
export async function startForeignBackend(): Promise<Extra> {
  const { dir, address } = lab();
  const authority = await createAuthority('foreign-ca');
  const names = [`${release.name}.${release.namespace}.svc`, host, address];
  const { certificate, key } = await authority.issue({ commonName: release.name, server: names });
  const files = { cert: join(dir, 'foreign.crt'), key: join(dir, 'foreign.key') };
  writeFileSync(files.cert, certificate);
  writeFileSync(files.key, key, { mode: 0o600 });
  return start([`--tls-cert-file=${files.cert}`, `--tls-private-key-file=${files.key}`], authority.certificate);
}

/** Makes a server the only endpoint of the https port, and returns a function that removes the endpoint. */
export const routeTo = ({ ports }: Extra): Promise<Undo> =>
  apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${release.name}-https`,
      namespace: release.namespace,
      labels: { 'kubernetes.io/service-name': release.name, 'endpointslice.kubernetes.io/managed-by': 'test-ingress' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [lab().address], conditions: { ready: true, serving: true, terminating: false } }],
    ports: [{ name: 'https', port: ports.https, protocol: 'TCP' }],
  });
