/** Runs nginx from Debian as a file server. No server can be much faster. */
import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execute, output } from '../../hack/cluster/exec.ts';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { assertAlive, start } from '../../hack/cluster/processes.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import type { Target } from './connection.ts';
import { withChildren } from './processes.ts';

export interface Nginx {
  readonly plain: Target;
  readonly tls: Target;
  /** PIDs of the nginx master process and its workers. */
  readonly pids: readonly number[];
  /** Path of the folder that contains the files. */
  readonly folder: string;
  /** Size of each file in bytes. */
  readonly sizes: Readonly<Record<string, number>>;
}

const installed = '/usr/sbin/nginx';

/**
 * Returns the machine's nginx, or Debian's package unpacked into the user's cache folder. Installing the package would
 * start a web server on port 80 of every address and require root.
 */
export async function findNginx(): Promise<string> {
  if (await exists(installed)) return installed;
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver');
  const program = join(cache, 'nginx/usr/sbin/nginx');
  if (await exists(program)) return program;
  const step = progress('fetching nginx');
  const folder = join(cache, `.nginx.${process.pid}`);
  try {
    await mkdir(folder, { recursive: true });
    await download(folder);
    const packed = (await readdir(folder)).filter((file) => file.endsWith('.deb'));
    await output('dpkg', ['-x', join(folder, packed[0] ?? ''), join(folder, 'nginx')]);
    await output(join(folder, 'nginx/usr/sbin/nginx'), ['-v']);
    await rename(join(folder, 'nginx'), join(cache, 'nginx'));
    step.end(true);
  } catch (cause) {
    step.end(false);
    throw new Error(
      'nginx is not installed and its package is unavailable; install it, for example with apt-get install nginx',
      {
        cause,
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return program;
}

/** Downloads packages with the existing package lists. If the lists are outdated, root can update them. */
async function download(cwd: string): Promise<void> {
  const { code } = await execute('apt-get', ['download', 'nginx'], { cwd });
  if (code === 0) return;
  if (userInfo().uid === 0) await output('apt-get', ['update']);
  await output('apt-get', ['download', 'nginx'], { cwd });
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/**
 * Serves `files` on loopback. The keys are paths without a leading slash. A client that requests `x` and accepts gzip
 * gets the file `x.gz`.
 */
export async function startNginx(options: {
  readonly program: string;
  readonly dir: string;
  readonly ports: { readonly plain: number; readonly tls: number };
  readonly files: Readonly<Record<string, Buffer>>;
}): Promise<Nginx> {
  const { program, dir, ports, files } = options;
  const folder = join(dir, 'nginx');
  await mkdir(join(folder, 'files'), { recursive: true });
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, 'files', name), bytes);
  const authority = await createAuthority('bench');
  const servername = 'localhost';
  const pair = await authority.issue({ commonName: 'nginx', server: [servername] });
  await writeFile(join(folder, 'tls.crt'), pair.certificate);
  await writeFile(join(folder, 'tls.key'), pair.key, { mode: 0o600 });
  await writeFile(join(folder, 'nginx.conf'), configuration(ports));
  const running = await start(dir, 'nginx', [program, '-p', folder, '-c', 'nginx.conf', '-e', 'stderr']);
  const host = '127.0.0.1';
  await until(
    'nginx responds',
    () => assertAlive(dir, [running]),
    async () => (await fetch(`http://${host}:${ports.plain}/${Object.keys(files)[0]}`)).ok,
  );
  // After this time, all workers have started and the master is idle.
  await sleep(200);
  return {
    plain: { host, port: ports.plain },
    tls: { host, port: ports.tls, tls: { ca: authority.certificate, servername } },
    pids: withChildren(running.pid),
    folder: join(folder, 'files'),
    sizes: Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, bytes.length])),
  };
}

const configuration = ({ plain, tls }: { plain: number; tls: number }): string => `daemon off;
${userInfo().uid === 0 ? "user root; # the state folder is nobody else's" : ''}
worker_processes auto;
pid nginx.pid;
error_log stderr;
events {}
http {
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`).join(' ')}
  access_log off;
  sendfile on;
  tcp_nopush on;
  gzip_static on;
  keepalive_requests 1000000000;
  default_type application/json;
  ssl_certificate tls.crt;
  ssl_certificate_key tls.key;
  server {
    listen 127.0.0.1:${plain};
    listen 127.0.0.1:${tls} ssl;
    root files;
  }
}
`;
