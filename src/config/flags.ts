import { parseArgs, type ParseArgsConfig } from 'node:util';
import { httpsURLExpected, isHTTPSURL } from './https-url.ts';
import { isSubdomain } from './names.ts';

/** Ports, files and names: all that is not in the configuration object. */
export interface Flags {
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly aggregatedPort: number;
  readonly bindAddress: string;
  readonly aggregatedBindAddress: string;
  readonly tlsCertFile: string | undefined;
  readonly tlsPrivateKeyFile: string | undefined;
  readonly kubeconfig: string | undefined;
  readonly namespace: string;
  readonly serviceName: string;
  readonly configMap: string;
  readonly config: string | undefined;
}

/** A command line that cannot be obeyed; the message is for the person who typed it. */
export class UsageError extends Error {}

/** `otherwise` says what holds without a flag that has no value of its own then. */
const options = {
  'http-port': { type: 'string', default: '9090', help: 'port of the front door in the clear' },
  'https-port': { type: 'string', default: '9443', help: 'port of the front door with TLS' },
  'aggregated-port': { type: 'string', default: '10250', help: 'port for kube-apiserver, with TLS' },
  'bind-address': { type: 'string', default: '0.0.0.0', help: 'address of the front door' },
  'aggregated-bind-address': { type: 'string', default: '0.0.0.0', help: 'address of the port for kube-apiserver' },
  'tls-cert-file': { type: 'string', otherwise: 'one of our own making', help: 'certificate to serve with, PEM' },
  'tls-private-key-file': { type: 'string', otherwise: 'one of our own making', help: 'its private key, PEM' },
  kubeconfig: {
    type: 'string',
    otherwise: 'the ServiceAccount of the pod',
    help: 'how to reach the cluster; its user must not impersonate (`as`)',
  },
  namespace: { type: 'string', otherwise: '$POD_NAMESPACE', help: 'namespace of the release' },
  'service-name': { type: 'string', default: 'platform-apiserver', help: 'Service that routes to us' },
  'config-map': { type: 'string', otherwise: 'platform-config', help: 'ConfigMap of the cluster configuration' },
  config: { type: 'string', otherwise: 'the ConfigMap', help: 'file of the cluster configuration' },
} as const;

/** Each flag and what it is, for people. */
export const flagsTable = (): [string, string][] =>
  Object.entries(options).map(([name, option]) => [
    `--${name}`,
    `${option.help} (default: ${'default' in option ? option.default : option.otherwise})`,
  ]);

/** parseArgs, whose complaints are for the person who typed. */
function parseStrictly<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** The arguments of a command that takes so many and no flags. Throws UsageError. */
export function parseArguments(argv: readonly string[], usage: string, count: number): readonly string[] {
  const { positionals } = parseStrictly({ args: [...argv], options: {}, strict: true, allowPositionals: true });
  if (positionals.length !== count)
    // Not repeated: it may be a password.
    throw new UsageError(`call it as "${usage}": arguments expected ${count}, given ${positionals.length}`);
  return positionals;
}

/** Of the credential plugin. */
export interface CredentialFlags {
  /** https URL of the platform; that of kubectl's cluster unless given. */
  readonly server: string | undefined;
  readonly caFile: string | undefined;
  readonly login: 'device' | 'password';
  readonly username: string | undefined;
  readonly audience: string | undefined;
  readonly logout: boolean;
}

/** Throws UsageError. */
export function parseCredentialFlags(argv: readonly string[]): CredentialFlags {
  const { values } = parseStrictly({
    args: [...argv],
    options: {
      server: { type: 'string' },
      'ca-file': { type: 'string' },
      login: { type: 'string', default: 'device' },
      username: { type: 'string' },
      audience: { type: 'string' },
      logout: { type: 'boolean', default: false },
    },
    strict: true,
    allowPositionals: false,
  });
  const { server, login, username, audience, logout } = values;
  if (server !== undefined && !isHTTPSURL(server)) throw new UsageError(`--server ${httpsURLExpected}`);
  if (login !== 'device' && login !== 'password')
    throw new UsageError(`--login must be device or password, not "${login}"`);
  if (login === 'password' && username === undefined)
    throw new UsageError('--login=password needs --username, the name of the user or the e-mail address');
  return { server, caFile: values['ca-file'], login, username, audience, logout };
}

/** Throws UsageError naming the flag. `environment` is read for POD_NAMESPACE only. */
export function parseFlags(argv: readonly string[], environment: Readonly<Record<string, string | undefined>>): Flags {
  const { values } = parseStrictly({ args: [...argv], options, strict: true, allowPositionals: false });
  const port = (flag: 'http-port' | 'https-port' | 'aggregated-port'): number => {
    const text = values[flag];
    if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
      throw new UsageError(`--${flag} must be a port between 0 and 65535, not "${text}"`);
    return Number(text);
  };
  if ((values['tls-cert-file'] === undefined) !== (values['tls-private-key-file'] === undefined))
    throw new UsageError('--tls-cert-file and --tls-private-key-file belong together: give both or neither');
  if (values.config !== undefined && values['config-map'] !== undefined)
    throw new UsageError('--config and --config-map exclude each other: give one');
  const namespace = values.namespace ?? environment['POD_NAMESPACE'];
  if (namespace === undefined || namespace === '')
    throw new UsageError(
      '--namespace (or the environment variable POD_NAMESPACE) must name the namespace of the release',
    );
  for (const [flag, name] of [
    ['namespace', namespace],
    ['service-name', values['service-name']],
    ['config-map', values['config-map'] ?? options['config-map'].otherwise],
  ] as const)
    if (!isSubdomain(name))
      throw new UsageError(`--${flag} must be the name of an object of Kubernetes, not ${JSON.stringify(name)}`);
  return {
    httpPort: port('http-port'),
    httpsPort: port('https-port'),
    aggregatedPort: port('aggregated-port'),
    bindAddress: values['bind-address'],
    aggregatedBindAddress: values['aggregated-bind-address'],
    tlsCertFile: values['tls-cert-file'],
    tlsPrivateKeyFile: values['tls-private-key-file'],
    kubeconfig: values.kubeconfig,
    namespace,
    serviceName: values['service-name'],
    configMap: values['config-map'] ?? options['config-map'].otherwise,
    config: values.config,
  };
}
