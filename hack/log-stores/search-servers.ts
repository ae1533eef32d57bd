/**
 * Runs real Elasticsearch and OpenSearch servers, one node each, on loopback. Both projects publish the servers of
 * their integration tests on Maven Central, from which Maven fetches them with the machine's settings. A server is
 * fetched once per machine, and unpacked at each start.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { installMissing } from '../cluster/apt.ts';
import { output } from '../cluster/exec.ts';
import { withLock } from '../cluster/lock.ts';
import { progress } from '../cluster/progress.ts';
import { run, type RunningService } from '../cluster/running.ts';

interface SearchServer {
  readonly kind: 'elasticsearch' | 'opensearch';
  readonly version: string;
  readonly sha256: string;
}

export const searchServers = {
  'opensearch-2.19.1': {
    kind: 'opensearch',
    version: '2.19.1',
    sha256: 'af7152d8b7f6f1cee09d47276b32b70479fe6dd8cdbb61213f84eb7f8098b261',
  },
  'elasticsearch-7.17.29': {
    kind: 'elasticsearch',
    version: '7.17.29',
    sha256: '841ee00be1a72ba8e707b5a2fb55f23fe7a4184369b4585393238b1c903eedaf',
  },
  'elasticsearch-6.8.23': {
    kind: 'elasticsearch',
    version: '6.8.23',
    sha256: 'd0499f7103d10c16c4cb575a796a509578053f21130979eda5745968f28b9928',
  },
} as const satisfies Readonly<Record<string, SearchServer>>;

export type SearchServerName = keyof typeof searchServers;

const packages = { maven: 'mvn', 'openjdk-17-jre-headless': 'java', unzip: 'unzip' };
const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1';

/** Returns the path of the server's archive in the user's cache folder. Fetches a missing archive. */
async function obtain({ kind, version, sha256 }: SearchServer): Promise<string> {
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver', 'log-stores');
  const path = join(cache, `${kind}-${version}.zip`);
  await withLock(path, async () => {
    if (existsSync(path)) return;
    const step = progress(`fetching ${kind} ${version}`);
    const work = join(cache, `.${kind}-${version}.${process.pid}`);
    let succeeded = false;
    try {
      await mkdir(work, { recursive: true });
      const group = `org.${kind}.distribution.integ-test-zip`;
      const artifact = `-Dartifact=${group}:${kind}:${version}:zip`;
      const args = ['--quiet', '--batch-mode', `${plugin}:copy`, artifact, `-DoutputDirectory=${work}`];
      await output('mvn', args, { timeout: 600_000 });
      const file = join(work, `${kind}-${version}.zip`);
      const found = createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
      if (found !== sha256) throw new Error(`${kind} ${version}: expected SHA-256 ${sha256}, got ${found}`);
      await rename(file, path);
      succeeded = true;
    } finally {
      step.end(succeeded);
      await rm(work, { recursive: true, force: true });
    }
  });
  return path;
}

/** Id of the unprivileged user that runs the servers, which refuse to run as root. */
const nobody = 65_534;
const isRoot = (): boolean => userInfo().uid === 0;

/**
 * Unpacks a server into `dir`, which other users must be able to reach, and starts the server. The server stores its
 * data in `dir` too.
 */
export async function startSearchServer(name: SearchServerName, dir: string, port: number): Promise<RunningService> {
  const server = searchServers[name];
  const { kind, version } = server;
  await installMissing(packages);
  const zip = await obtain(server);
  const home = join(dir, `${kind}-${version}`);
  const folders = ['conf', 'data', 'logs', 'tmp'].map((folder) => join(dir, folder));
  await mkdir(dir, { recursive: true });
  await output('unzip', ['-q', '-o', zip, '-d', dir]);
  for (const folder of folders) await mkdir(folder, { recursive: true });
  await writeFile(join(dir, 'conf', `${kind}.yml`), configuration(server, dir, port));
  await writeFile(join(dir, 'conf', 'log4j2.properties'), logging);
  if (isRoot()) {
    for (const folder of [dir, ...folders]) await chown(folder, nobody, nobody);
    await chmod(dir, 0o755);
  }
  return await run({
    name,
    url: `http://127.0.0.1:${port}`,
    command: command(server, home, dir),
    cwd: dir,
    env: { LIBFFI_TMPDIR: join(dir, 'tmp') },
    id: isRoot() ? nobody : undefined,
    readyPath: '/_cluster/health',
  });
}

const configuration = ({ kind, version }: SearchServer, dir: string, port: number): string => {
  const isOld = kind === 'elasticsearch' && version.startsWith('6.');
  return `cluster.name: logs
node.name: n1
path.data: ${dir}/data
path.logs: ${dir}/logs
network.host: 127.0.0.1
http.port: ${port}
transport.${isOld ? 'tcp.port' : 'port'}: ${port + 1}
discovery.type: single-node
bootstrap.system_call_filter: false
cluster.routing.allocation.disk.threshold_enabled: false
${kind === 'elasticsearch' && !isOld ? 'action.auto_create_index: true\n' : ''}`;
};

const logging = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
`;

function command({ kind }: SearchServer, home: string, dir: string): string[] {
  const setting = kind === 'opensearch' ? 'opensearch' : 'es';
  const main =
    kind === 'opensearch' ? 'org.opensearch.bootstrap.OpenSearch' : 'org.elasticsearch.bootstrap.Elasticsearch';
  const settings = {
    'java.awt.headless': 'true',
    'file.encoding': 'UTF-8',
    'jna.nosys': 'true',
    'io.netty.noUnsafe': 'true',
    'io.netty.noKeySetOptimization': 'true',
    'io.netty.recycler.maxCapacityPerThread': '0',
    'log4j.shutdownHookEnabled': 'false',
    'log4j2.disable.jmx': 'true',
    'log4j2.formatMsgNoLookups': 'true',
    'java.locale.providers': 'SPI,COMPAT',
    'java.security.manager': 'allow',
    'java.io.tmpdir': join(dir, 'tmp'),
    [`${setting}.path.home`]: home,
    [`${setting}.path.conf`]: join(dir, 'conf'),
    [`${setting}.distribution.flavor`]: 'oss',
    [`${setting}.distribution.type`]: 'zip',
    [`${setting}.bundled_jdk`]: 'false',
  };
  return [
    'java',
    '-Xms512m',
    '-Xmx512m',
    '-Xss1m',
    '-XX:+UseSerialGC',
    '--add-opens=java.base/java.io=ALL-UNNAMED',
    ...Object.entries(settings).map(([key, value]) => `-D${key}=${value}`),
    '-cp',
    join(home, 'lib', '*'),
    main,
  ];
}
