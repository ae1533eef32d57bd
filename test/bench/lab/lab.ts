/**
 * Runs our server in its own process, with an in-memory cluster in another process. The latency of the cluster can be
 * configured.
 */
import { hash } from '@node-rs/argon2';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Username of the heavy user, who uses as much as possible of a resource. */
export const hog = 'hog';
/** Milliseconds that the cluster takes for an access review or a token review. */
export const reviewTime = 10;
/** Milliseconds that a slow operation of the cluster takes. */
export const slowTime = 500;

export const password = 'correct horse battery';
export const others = Array.from({ length: 20 }, (_, index) => `user-${index}`);

export interface BenchLab {
  readonly server: ChildProcess;
  /** Port of the gateway over plain HTTP. */
  readonly port: number;
  stop(): Promise<void>;
}

const configuration = async (audit: object): Promise<string> => {
  const passwordHash = await hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 });
  return JSON.stringify({
    apiVersion: 'config.platform.io/v1alpha1',
    kind: 'PlatformConfiguration',
    authentication: {
      issuer: 'https://platform.example',
      users: [hog, ...others].map((username) => ({ username, passwordHash })),
      clients: [{ name: 'bench', secret: 'of-the-bench' }],
    },
    requests: { trustedProxies: ['127.0.0.1/32'] },
    audit,
  });
};

const kubeconfig = (server: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    clusters: [{ name: 'bench', cluster: { server } }],
    users: [{ name: 'bench', user: { token: 'bench' } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
  });

interface BenchLabOptions {
  /** Modules that the server loads first. */
  readonly imports?: readonly string[];
  /** The section `audit` of the configuration. */
  readonly audit?: object;
}

export async function startBenchLab({
  imports = [],
  audit = { policy: { level: 'RequestResponse' }, log: { path: '/dev/null' } },
}: BenchLabOptions = {}): Promise<BenchLab> {
  const folder = await mkdtemp(join(tmpdir(), 'platform-apiserver-bench-lab-'));
  const withParent = ['--import', import.meta.resolve('./with-parent.ts')];
  const cluster = fork(fileURLToPath(import.meta.resolve('./cluster.ts')), { execArgv: withParent });
  const [{ url }] = (await once(cluster, 'message')) as [{ url: string }];
  await writeFile(join(folder, 'kubeconfig'), kubeconfig(url));
  await writeFile(join(folder, 'platform.yaml'), await configuration(audit));
  const ports = ['http', 'https', 'aggregated'].flatMap((name) => [`--${name}-port`, '0']);
  const flags = [...ports, '--bind-address', '127.0.0.1', '--aggregated-bind-address', '127.0.0.1'];
  const files = ['--kubeconfig', join(folder, 'kubeconfig'), '--config', join(folder, 'platform.yaml')];
  const server = fork(
    fileURLToPath(import.meta.resolve('../../../src/main.ts')),
    [...flags, ...files, '--namespace', 'platform-system'],
    {
      execArgv: [
        '--max-semi-space-size=16',
        '--no-allocation-site-pretenuring',
        ...withParent,
        ...imports.flatMap((one) => ['--import', one]),
      ],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  );
  const port = await servingPort(server);
  const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
  // The loop ends after 5 s even if the server is not ready, because the lab has no front proxy.
  for (let tries = 0; tries < 50 && !(await ready()); tries += 1) await sleep(100);
  return {
    server,
    port,
    async stop() {
      for (const child of [server, cluster]) {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      }
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns an access token of the user. */
export async function logIn({ port }: BenchLab, username: string): Promise<string> {
  const body = new URLSearchParams({
    grant_type: 'password',
    username,
    password,
    client_id: 'bench',
    client_secret: 'of-the-bench',
  });
  const response = await fetch(`http://127.0.0.1:${port}/oauth/token`, { method: 'POST', body });
  return String(((await response.json()) as { access_token?: string }).access_token);
}

/**
 * Returns the HTTP port from the server's log, and reports later errors. Later lines are not parsed: the server writes a
 * line per request, and parsing them would take the CPU time that the bench measures.
 */
async function servingPort(server: ChildProcess): Promise<number> {
  const output = server.stdout as NodeJS.ReadableStream;
  const lines = createInterface({ input: output });
  const port = await new Promise<number>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    lines.on('line', (line) => {
      const { message, http: chosen } = JSON.parse(line) as { message: string; http?: number };
      if (message === 'serving' && chosen !== undefined) resolve(chosen);
    });
  });
  lines.close();
  output.on('data', (chunk: Buffer) => {
    if (chunk.includes('"level":"error"')) process.stderr.write(chunk);
  });
  output.resume();
  return port;
}
