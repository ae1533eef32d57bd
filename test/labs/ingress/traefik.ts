/** A real Traefik in front of a server of the lab, as an Ingress controller and as a Gateway. */
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { createAuthority, type Authority } from '../../../hack/cluster/pki.ts';
import { startTraefik, traefikDefinitions, type TraefikPorts } from '../../../hack/ingress/traefik.ts';
import { release } from '../../../hack/run/chart.ts';
import { kubectl, succeed } from '../integration/kubectl.ts';
import { lab } from '../integration/lab.ts';
import { apply, controllerNamespace, host, type Undo } from './routes.ts';

export interface Traefik {
  /** CA of the certificate of the TLS entry point, in PEM. */
  readonly authority: string;
  readonly ports: TraefikPorts;
}

const gatewayAPI = 'gateway.networking.k8s.io/v1';

/**
 * Installs the definitions, classes and the Gateway, and starts Traefik. Appends functions to `cleanup` that, in reverse
 * order, remove everything.
 */
export async function startTraefikInLab(cleanup: Undo[]): Promise<Traefik> {
  const { dir, kubeconfig } = lab();
  const definitions = (await traefikDefinitions()).flatMap((file) => ['-f', file]);
  cleanup.push(() => succeed(kubectl, 'delete', '--ignore-not-found', ...definitions));
  await succeed(kubectl, 'apply', '--server-side', ...definitions);
  await succeed(kubectl, 'wait', '--for=condition=established', '--timeout=30s', 'crd', '--all');
  const ping = await freePort(23_000 + seed(dir, 4_000));
  const web = await freePort(ping + 1);
  const websecure = await freePort(web + 1);
  const ports = { ping, web, websecure, passthrough: await freePort(websecure + 1) };
  const authority = await createAuthority('public-ca');
  cleanup.push(await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: controllerNamespace } }));
  cleanup.push(await apply(...(await certificates(authority)), ...classes, gateway(ports)));
  const traefik = await startTraefik(join(dir, 'traefik'), ports, kubeconfig);
  cleanup.push(() => traefik.stop());
  return { authority: authority.certificate, ports };
}

/** Returns the Secret with the certificate for the host, in the namespaces of the Ingress and of the Gateway. */
async function certificates(authority: Authority): Promise<object[]> {
  const { certificate, key } = await authority.issue({ commonName: host, server: [host] });
  return [release.namespace, controllerNamespace].map((namespace) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'platform-example-com', namespace },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  }));
}

const classes = [
  {
    apiVersion: gatewayAPI,
    kind: 'GatewayClass',
    metadata: { name: 'traefik' },
    spec: { controllerName: 'traefik.io/gateway-controller' },
  },
  ...Object.entries({ traefik: 'traefik.io/ingress-controller', nginx: 'k8s.io/ingress-nginx' }).map(
    ([name, controller]) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IngressClass',
      metadata: { name },
      spec: { controller },
    }),
  ),
];

/** Returns the Gateway to which the documented routes refer. */
const gateway = ({ websecure, passthrough }: TraefikPorts): object => ({
  apiVersion: gatewayAPI,
  kind: 'Gateway',
  metadata: { name: 'public', namespace: controllerNamespace },
  spec: {
    gatewayClassName: 'traefik',
    listeners: [
      {
        name: 'https',
        protocol: 'HTTPS',
        port: websecure,
        tls: { certificateRefs: [{ name: 'platform-example-com' }] },
        allowedRoutes: { namespaces: { from: 'All' } },
      },
      {
        name: 'passthrough',
        protocol: 'TLS',
        port: passthrough,
        tls: { mode: 'Passthrough' },
        allowedRoutes: { namespaces: { from: 'All' } },
      },
    ],
  },
});
