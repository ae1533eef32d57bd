import { parseArgs } from 'node:util';

/** Ports, files and names: all that is not in the configuration object (API.md 8). */
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

const options = {
  'http-port': { type: 'string', default: '9090' },
  'https-port': { type: 'string', default: '9443' },
  'aggregated-port': { type: 'string', default: '10250' },
  'bind-address': { type: 'string', default: '0.0.0.0' },
  'aggregated-bind-address': { type: 'string', default: '0.0.0.0' },
  'tls-cert-file': { type: 'string' },
  'tls-private-key-file': { type: 'string' },
  kubeconfig: { type: 'string' },
  namespace: { type: 'string' },
  'service-name': { type: 'string', default: 'platform-apiserver' },
  'config-map': { type: 'string' },
  config: { type: 'string' },
} as const;

const parse = (argv: readonly string[]) =>
  parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values;

/** Throws UsageError naming the flag. `environment` is read for POD_NAMESPACE only. */
export function parseFlags(argv: readonly string[], environment: Readonly<Record<string, string | undefined>>): Flags {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(argv);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
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
    ['config-map', values['config-map'] ?? 'platform-config'],
  ] as const)
    if (!isObjectName(name))
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
    configMap: values['config-map'] ?? 'platform-config',
    config: values.config,
  };
}

/** RFC 1123, as Kubernetes' names are; it becomes part of paths. */
const isObjectName = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);
