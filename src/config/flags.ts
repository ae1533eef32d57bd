import { parseArgs, type ParseArgsConfig } from 'node:util';
import { nearest } from './error-map.ts';
import { httpsURLExpected, isHTTPSURL } from './https-url.ts';
import { isSubdomain } from './names.ts';

/** Ports, files and names, which are not part of the configuration object. */
export interface Flags {
  /** Port for plain HTTP; undefined if plain HTTP is disabled. */
  readonly httpPort: number | undefined;
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

/** Error for an invalid command line. The message is for the user. */
export class UsageError extends Error {}

/** `otherwise` describes what applies if a flag without a fixed default is not set. */
const options = {
  'http-port': {
    type: 'string',
    value: 'PORT',
    default: '9090',
    help: 'port for clients, plain HTTP; off disables it',
  },
  'https-port': { type: 'string', value: 'PORT', default: '9443', help: 'port for clients, HTTPS' },
  'aggregated-port': { type: 'string', value: 'PORT', default: '10250', help: 'port for kube-apiserver, HTTPS' },
  'bind-address': {
    type: 'string',
    value: 'ADDRESS',
    default: '0.0.0.0',
    help: 'address of the ports for clients',
  },
  'aggregated-bind-address': {
    type: 'string',
    value: 'ADDRESS',
    default: '0.0.0.0',
    help: 'address of the port for kube-apiserver',
  },
  'tls-cert-file': {
    type: 'string',
    value: 'FILE',
    otherwise: 'a generated one',
    help: 'serving certificate, PEM',
  },
  'tls-private-key-file': {
    type: 'string',
    value: 'FILE',
    otherwise: 'a generated one',
    help: 'private key of the serving certificate, PEM',
  },
  kubeconfig: {
    type: 'string',
    value: 'FILE',
    otherwise: 'the ServiceAccount of the pod',
    help: 'kubeconfig of the cluster; its user must not set `as`',
  },
  namespace: { type: 'string', value: 'NAME', otherwise: '$POD_NAMESPACE', help: 'namespace of the release' },
  'service-name': {
    type: 'string',
    value: 'NAME',
    default: 'platform-apiserver',
    help: 'Service that routes to this server',
  },
  'config-map': {
    type: 'string',
    value: 'NAME',
    otherwise: 'platform-config',
    help: 'ConfigMap with the configuration',
  },
  config: { type: 'string', value: 'FILE', otherwise: 'the ConfigMap', help: 'file with the configuration' },
} as const;

const credentialOptions = {
  server: {
    type: 'string',
    value: 'URL',
    otherwise: 'the cluster of the kubeconfig',
    help: 'https URL of the platform',
  },
  'ca-file': {
    type: 'string',
    value: 'FILE',
    otherwise: 'the CA of the kubeconfig, or the CAs of Node.js with --server',
    help: 'CA certificate of the platform, PEM',
  },
  login: {
    type: 'string',
    value: 'HOW',
    default: 'device',
    help: 'device (in a browser, also on another machine) or password',
  },
  username: { type: 'string', value: 'NAME', help: 'username or e-mail address for --login=password' },
  audience: {
    type: 'string',
    value: 'NAME',
    otherwise: 'the platform',
    help: 'audience of the token, such as kubernetes',
  },
  logout: { type: 'boolean', default: false, help: 'revoke the session and delete the cached tokens' },
} as const;

const doctorOptions = {
  kubeconfig: {
    type: 'string',
    value: 'FILE',
    otherwise: '$KUBECONFIG, ~/.kube/config, or the ServiceAccount of the pod',
    help: 'kubeconfig of the cluster',
  },
  context: { type: 'string', value: 'NAME', otherwise: 'the current context', help: 'context of the kubeconfig' },
  namespace: { type: 'string', value: 'NAME', default: 'platform-system', help: 'namespace of the release' },
  service: { type: 'string', value: 'NAME', default: 'platform-apiserver', help: 'Service of the release' },
  output: { type: 'string', value: 'FORMAT', default: 'text', help: 'text or json' },
  bundle: { type: 'string', value: 'FILE', help: 'also write a support bundle without secrets, a .tar.gz' },
} as const;

interface FlagOption {
  readonly help: string;
  /** Placeholder for the value in the help. */
  readonly value?: string;
  readonly default?: string | boolean;
  readonly otherwise?: string;
}

const tableOf = (described: Readonly<Record<string, FlagOption>>): [string, string][] =>
  Object.entries(described).map(([name, { help, value, default: preset, otherwise }]) => {
    const shown = typeof preset === 'string' ? preset : otherwise;
    return [
      value === undefined ? `--${name}` : `--${name}=${value}`,
      shown === undefined ? help : `${help} (default: ${shown})`,
    ];
  });

/** Returns each flag and its meaning, for the help. */
export const flagsTable = (): [string, string][] => tableOf(options);
export const credentialFlagsTable = (): [string, string][] => tableOf(credentialOptions);
export const doctorFlagsTable = (): [string, string][] => tableOf(doctorOptions);

/** Calls parseArgs. Throws UsageError, whose message names the closest flag for an unknown flag. */
function parseStrictly<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    const { message } = error as Error;
    const unknown = /^Unknown option '(--?)([^']+)'/.exec(message);
    if (unknown === null) throw new UsageError(message);
    const [, dashes = '', name = ''] = unknown;
    const near = nearest(name, Object.keys(config.options ?? {}));
    throw new UsageError(`unknown flag ${dashes}${name}${near === undefined ? '' : `; did you mean --${near}?`}`);
  }
}

/** Returns the arguments of a command without flags that takes `count` arguments. Throws UsageError. */
export function parseArguments(argv: readonly string[], usage: string, count: number): readonly string[] {
  const { positionals } = parseStrictly({ args: [...argv], options: {}, strict: true, allowPositionals: true });
  if (positionals.length !== count)
    // The message does not repeat the arguments, which may contain a password.
    throw new UsageError(
      `usage: ${usage} (expected ${count} argument${count === 1 ? '' : 's'}, got ${positionals.length})`,
    );
  return positionals;
}

/** Flags of the credential plugin. */
export interface CredentialFlags {
  /** https URL of the platform. Default: the URL of kubectl's cluster. */
  readonly server: string | undefined;
  readonly caFile: string | undefined;
  readonly login: 'device' | 'password';
  readonly username: string | undefined;
  readonly audience: string | undefined;
  readonly logout: boolean;
}

/** Parses the flags of the credential plugin. Throws UsageError. */
export function parseCredentialFlags(argv: readonly string[]): CredentialFlags {
  const { values } = parseStrictly({
    args: [...argv],
    options: credentialOptions,
    strict: true,
    allowPositionals: false,
  });
  const { server, login, username, audience, logout } = values;
  if (server !== undefined && !isHTTPSURL(server)) throw new UsageError(`--server ${httpsURLExpected}`);
  if (login !== 'device' && login !== 'password')
    throw new UsageError(`--login: expected device or password, got "${login}"`);
  if (login === 'password' && username === undefined)
    throw new UsageError('--login=password requires --username, with a username or an e-mail address');
  return { server, caFile: values['ca-file'], login, username, audience, logout };
}

/** Flags of the doctor. */
export interface DoctorFlags {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly namespace: string;
  readonly service: string;
  readonly output: 'text' | 'json';
  readonly bundle: string | undefined;
}

/** Parses the flags of the doctor. Throws UsageError. */
export function parseDoctorFlags(argv: readonly string[]): DoctorFlags {
  const { values } = parseStrictly({ args: [...argv], options: doctorOptions, strict: true, allowPositionals: false });
  const { kubeconfig, context, namespace, service, output, bundle } = values;
  assertNames({ namespace, service });
  if (output !== 'text' && output !== 'json')
    throw new UsageError(`--output: expected text or json, got ${JSON.stringify(output)}`);
  return { kubeconfig, context, namespace, service, output, bundle };
}

/** Throws UsageError unless each value is a name of an object. The keys are the flags. */
function assertNames(names: Readonly<Record<string, string>>): void {
  for (const [flag, name] of Object.entries(names))
    if (!isSubdomain(name))
      throw new UsageError(`--${flag}: expected the name of a Kubernetes object, got ${JSON.stringify(name)}`);
}

/**
 * Parses the flags of the server. Throws a UsageError that names the flag. Reads only POD_NAMESPACE from `environment`.
 */
export function parseFlags(argv: readonly string[], environment: Readonly<Record<string, string | undefined>>): Flags {
  const { values } = parseStrictly({ args: [...argv], options, strict: true, allowPositionals: false });
  const port = (flag: 'http-port' | 'https-port' | 'aggregated-port'): number => {
    const text = values[flag];
    if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
      throw new UsageError(
        `--${flag}: expected a port from 0 to 65535${flag === 'http-port' ? ' or off' : ''}, got "${text}"`,
      );
    return Number(text);
  };
  if ((values['tls-cert-file'] === undefined) !== (values['tls-private-key-file'] === undefined))
    throw new UsageError('--tls-cert-file and --tls-private-key-file must be set together');
  if (values.config !== undefined && values['config-map'] !== undefined)
    throw new UsageError('--config and --config-map are mutually exclusive');
  const namespace = values.namespace ?? environment['POD_NAMESPACE'];
  if (namespace === undefined || namespace === '')
    throw new UsageError(
      '--namespace is required (or set the environment variable POD_NAMESPACE): the namespace of the release',
    );
  const serviceName = values['service-name'];
  const configMap = values['config-map'] ?? options['config-map'].otherwise;
  assertNames({ namespace, 'service-name': serviceName, 'config-map': configMap });
  return {
    httpPort: values['http-port'] === 'off' ? undefined : port('http-port'),
    httpsPort: port('https-port'),
    aggregatedPort: port('aggregated-port'),
    bindAddress: values['bind-address'],
    aggregatedBindAddress: values['aggregated-bind-address'],
    tlsCertFile: values['tls-cert-file'],
    tlsPrivateKeyFile: values['tls-private-key-file'],
    kubeconfig: values.kubeconfig,
    namespace,
    serviceName,
    configMap,
    config: values.config,
  };
}
