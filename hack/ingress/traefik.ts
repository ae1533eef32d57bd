/** Runs a real Traefik on loopback, built from the module pinned in programs/go.mod. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { moduleFolder } from '../cluster/go-modules.ts';
import { goProgram } from '../cluster/go-program.ts';
import { run, type RunningService } from '../cluster/running.ts';

/** Folder of the go.mod that pins Traefik. */
export const traefikModules = join(import.meta.dirname, 'programs');

/** Maximum duration of the first build on a busy machine, in milliseconds. */
export const buildTimeout = 3_600_000;

const localhost = (port: number): string => `127.0.0.1:${port}`;

/** Returns the files with the definitions of the custom resources that Traefik reads. */
export async function traefikDefinitions(): Promise<string[]> {
  const [traefik, gatewayAPI] = await Promise.all([
    moduleFolder('github.com/traefik/traefik/v3', traefikModules),
    moduleFolder('sigs.k8s.io/gateway-api', traefikModules),
  ]);
  return [
    join(traefik, 'docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml'),
    join(gatewayAPI, 'config/crd/standard'),
  ];
}

export interface TraefikPorts {
  readonly ping: number;
  /** Entry point without TLS. */
  readonly web: number;
  /** Entry point that terminates TLS. */
  readonly websecure: number;
  /** Entry point for TLS passthrough. */
  readonly passthrough: number;
}

export const traefikProgram = (): Promise<string> =>
  goProgram(traefikModules, 'github.com/traefik/traefik/v3/cmd/traefik');

/** Starts Traefik with the providers for Ingresses of its own class and of ingress-nginx, and for the Gateway API. */
export async function startTraefik(dir: string, ports: TraefikPorts, kubeconfig: string): Promise<RunningService> {
  const traefik = await traefikProgram();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, 'traefik.yaml');
  const configuration = {
    global: { checkNewVersion: false, sendAnonymousUsage: false },
    entryPoints: {
      ping: { address: localhost(ports.ping) },
      web: { address: localhost(ports.web) },
      websecure: {
        address: localhost(ports.websecure),
        asDefault: true,
        http: { tls: {} },
      },
      passthrough: { address: localhost(ports.passthrough) },
    },
    ping: { entryPoint: 'ping' },
    providers: {
      kubernetesCRD: {},
      kubernetesGateway: {},
      kubernetesIngress: {},
      kubernetesIngressNGINX: { httpEntryPoint: 'web', httpsEntryPoint: 'websecure' },
    },
  };
  await writeFile(file, JSON.stringify(configuration));
  return await run({
    name: 'traefik',
    url: `http://${localhost(ports.ping)}`,
    command: [traefik, `--configFile=${file}`],
    cwd: dir,
    env: { KUBECONFIG: kubeconfig },
    readyPath: '/ping',
  });
}
