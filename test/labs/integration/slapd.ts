/**
 * Starts a real LDAP server, OpenLDAP's slapd. If slapd is not installed, it is unpacked from Debian's packages without
 * root.
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { execute, output } from '../../../hack/cluster/exec.ts';
import { withLock } from '../../../hack/cluster/lock.ts';
import { createAuthority } from '../../../hack/cluster/pki.ts';
import { until } from '../../../hack/cluster/until.ts';
import { lab } from './lab.ts';
import { startProgram, type Program } from './program.ts';

export const suffix = 'dc=example,dc=com';
export const service = { dn: `cn=platform,${suffix}`, password: 'looks people up 6204' } as const;

export interface Slapd {
  /** CA of the certificate of slapd, in PEM. */
  readonly caCertificate: string;
  /** URL of slapd with the scheme ldaps. */
  readonly secure: string;
  /** URL of slapd with the scheme ldap. Connections must use StartTLS. */
  readonly plain: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface SecretKeyRef {
  readonly name: string;
  readonly key: string;
}

/** Returns the configuration of an identity provider for this server. `ldap` replaces parts of its section. */
export const ldapProvider = (
  { secure, caCertificate }: Slapd,
  bindPasswordRef: SecretKeyRef,
  ldap: object = {},
): object => ({
  name: 'corp',
  type: 'LDAP',
  mapping: 'auto',
  ldap: {
    url: secure,
    caCertificate,
    bindDN: service.dn,
    bindPasswordRef,
    userSearch: { base: `ou=people,${suffix}`, filter: '(uid={username})' },
    groupSearch: { base: `ou=groups,${suffix}` },
    ...ldap,
  },
});

/** Returns the folder that contains the files of slapd: the root folder, or a folder in the cache. */
async function installation(): Promise<string> {
  if (existsSync('/usr/sbin/slapd') && existsSync('/etc/ldap/schema')) return '';
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver');
  const folder = join(cache, 'slapd');
  if (!existsSync(folder)) await withLock(folder, () => unpack(folder));
  return folder;
}

/** Unpacks Debian's package and its missing dependencies with apt, without changing the machine. */
async function unpack(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const work = `${folder}.${process.pid}`;
  const archives = join(work, 'cache/archives');
  await mkdir(join(archives, 'partial'), { recursive: true });
  await mkdir(join(work, 'lists/partial'), { recursive: true });
  const own = [`Dir::Cache=${work}/cache`, `Dir::State::lists=${work}/lists`, 'Debug::NoLocking=1'];
  const options = ['--quiet', ...own.flatMap((option) => ['-o', option])];
  await output('apt-get', [...options, 'update'], { timeout: 300_000 });
  const install = ['install', '--yes', '--no-install-recommends', '--download-only', 'slapd'];
  await output('apt-get', [...options, ...install], { timeout: 300_000 });
  const root = join(work, 'root');
  for (const file of await readdir(archives))
    if (file.endsWith('.deb')) await output('dpkg-deb', ['-x', join(archives, file), root]);
  await rename(root, folder);
  await rm(work, { recursive: true });
}

const env = async (root: string): Promise<Record<string, string>> => {
  if (root === '') return {};
  const libraries = join(root, 'usr/lib');
  const folders = (await readdir(libraries)).filter((name) => name.endsWith('-linux-gnu'));
  return { LD_LIBRARY_PATH: folders.map((name) => join(libraries, name)).join(delimiter) };
};

/** Returns whether a program accepts connections on the port. */
async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Starts a server with these entries in LDIF and a service account that is allowed to search for the entries. */
export async function createSlapd(entries: string): Promise<Slapd> {
  const root = await installation().catch((cause: unknown) => {
    throw new Error('slapd is neither installed nor available from Debian packages: install it', { cause });
  });
  const dir = await mkdtemp(join(lab().dir, 'slapd-'));
  await mkdir(join(dir, 'data'), { mode: 0o700 });
  const authority = await createAuthority('directory-ca');
  const pair = await authority.issue({ commonName: 'directory', server: ['127.0.0.1', 'localhost'] });
  const write = (name: string, text: string): Promise<void> => writeFile(join(dir, name), text, { mode: 0o600 });
  await write('tls.crt', pair.certificate);
  await write('tls.key', pair.key);
  const schemas = ['core', 'cosine', 'inetorgperson'].map((name) => `include ${root}/etc/ldap/schema/${name}.schema`);
  const configuration = `${schemas.join('\n')}
modulepath ${root}/usr/lib/ldap
moduleload back_mdb
pidfile ${dir}/slapd.pid
TLSCertificateFile ${dir}/tls.crt
TLSCertificateKeyFile ${dir}/tls.key
security ssf=1
database mdb
suffix ${suffix}
directory ${dir}/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=${service.dn} read by * none
`;
  await write('slapd.conf', configuration);
  const first = `dn: ${suffix}
objectClass: domain
dc: example

dn: ${service.dn}
objectClass: person
cn: platform
sn: platform
userPassword: ${service.password}
`;
  await write('entries.ldif', `${first}\n${entries}`);
  const program = join(root, '/usr/sbin/slapd');
  const settings = await env(root);
  const config = ['-f', join(dir, 'slapd.conf')];
  const loaded = await execute(program, ['-Tadd', ...config, '-l', join(dir, 'entries.ldif')], { env: settings });
  if (loaded.code !== 0) throw new Error(`slapadd ended with ${loaded.code}: ${loaded.stderr}`);
  const port = await freePort(26_000 + seed(dir, 1_000));
  const plainPort = await freePort(port + 1);
  const secure = `ldaps://127.0.0.1:${port}`;
  const plain = `ldap://127.0.0.1:${plainPort}`;
  let running: Program | undefined;
  return {
    caCertificate: authority.certificate,
    secure,
    plain,
    async start() {
      running = startProgram(program, ['-d', '0', ...config, '-h', `${secure}/ ${plain}/`], settings);
      await until(
        'slapd listens',
        () => Promise.resolve(),
        // A check whether the port is free would listen on it, and slapd could then fail to.
        () => accepts(plainPort),
      );
    },
    async stop() {
      await running?.end();
      running = undefined;
    },
  };
}
