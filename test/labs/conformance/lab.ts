/** The whole server on loopback sockets, with an in-memory cluster that has three nodes, and a front proxy. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import { createAuthority, type Pair } from '../../../hack/cluster/pki.ts';
import { createLogger, type Logger } from '../../../src/runtime/logger.ts';
import { parseFlags } from '../../../src/config/flags.ts';
import { startServer, type RunningServer } from '../../../src/server.ts';
import type { ConnectionOptions } from 'node:tls';
import { connect, open, type Target } from '../../client/http1.ts';
import { connectHTTP2, openHTTP2 } from '../../client/http2.ts';
import type { Message, Request } from '../../client/message.ts';
import { checked, type AppResponse, type AppRequest as LocalAsk } from '../../fakes/request.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { issuer } from '../../fakes/configuration.ts';
import { signingKeysSecret } from '../../fakes/signing-keys.ts';
import { upstreamAt } from '../../fakes/upstream.ts';

export { issuer };
export const nodes = '/apis/resources.platform.io/v1alpha3/nodes';
export const asClient = { client_id: 'platform', client_secret: 'platform' };
/** Credentials of an OAuth client at which users log in. */
export const asConsole = { client_id: 'console', client_secret: 'of-the-console' };
export const consoleCallback = 'https://console.example/callback';
export const login = { grant_type: 'password', username: 'alice', password: 'correct horse battery', ...asClient };
/** bcrypt hash of the password in `login`, at a cost suitable only for tests. */
const passwordHash = '$2b$04$PVYFFzvPKAZ5s.rDfx34..PB6WWeDAm4X5T0Fqize59IEWhtVe4tS';

export type LabRequest = Omit<LocalAsk, 'from'>;

export interface Lab {
  /** The cluster that the server reads. */
  readonly cluster: MemoryCluster;
  /** Creates or updates a node with an annotation of this many bytes. */
  readonly putNode: (name: string, size: number) => void;
  readonly ports: RunningServer['ports'];
  /** Sends a client's request to the gateway over HTTP/2. Returns the headers, including the status, and the body. */
  readonly http2: (
    path: string,
    method: string,
    more?: OutgoingHttpHeaders,
  ) => Promise<readonly [IncomingHttpHeaders, string]>;
  /**
   * Sends a request and resolves with the head of the response. The connection uses TLS unless the listener is `http`.
   * The aggregator sends requests on behalf of alice.
   */
  readonly open: (listener: Way, path: string, request?: LabRequest) => Promise<Message>;
  /** Sends a client's request to the gateway. */
  readonly gateway: (path: string, request?: LabRequest) => Promise<AppResponse>;
  /** Sends a client's request to the gateway over TLS, where the pages are served. */
  readonly secureGateway: (path: string, request?: LabRequest) => Promise<AppResponse>;
  /** Client certificate of the aggregator. */
  readonly frontProxy: { readonly key: string; readonly cert: string };
  /** Sends a request of the aggregator on behalf of alice. */
  readonly aggregated: (path: string, request?: LabRequest) => Promise<AppResponse>;
  readonly token: (fields: Readonly<Record<string, string>>) => Promise<AppResponse>;
  /** Revokes the session of an access token. */
  readonly revoke: (accessToken: string) => Promise<AppResponse>;
  readonly stop: (times?: { readonly announce: number; readonly grace: number }) => Promise<void>;
}

/** Puts a node with an annotation of this many bytes. */
function putNode(cluster: MemoryCluster, name: string, size?: number): void {
  const metadata = { name, ...(size === undefined ? {} : { annotations: { filling: 'x'.repeat(size) } }) };
  cluster.put('/api/v1/nodes', { kind: 'Node', apiVersion: 'v1', metadata, spec: {}, status: {} });
}

function fill(cluster: MemoryCluster, proxyCA: string, sections: object): void {
  const user = { username: 'alice', groups: ['readers'], passwordHash };
  const clients = [
    { name: asClient.client_id, secret: asClient.client_secret },
    {
      name: asConsole.client_id,
      secret: asConsole.client_secret,
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectURIs: [consoleCallback],
    },
  ];
  const configuration = {
    apiVersion: 'config.platform.io/v1alpha1',
    kind: 'PlatformConfiguration',
    authentication: { issuer, users: [user], clients },
    ...sections,
  };
  cluster.put('/api/v1/namespaces/platform-system/configmaps', {
    metadata: { name: 'platform-config' },
    data: { 'platform.yaml': JSON.stringify(configuration) },
  });
  cluster.put('/api/v1/namespaces/kube-system/configmaps', {
    metadata: { name: 'extension-apiserver-authentication' },
    data: {
      'requestheader-client-ca-file': proxyCA,
      'requestheader-allowed-names': '["front-proxy-client"]',
      'requestheader-username-headers': '["X-Remote-User"]',
      'requestheader-group-headers': '["X-Remote-Group"]',
      'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    },
  });
  cluster.put('/api/v1/namespaces/platform-system/secrets', signingKeysSecret);
  for (const name of ['n1', 'n2', 'n3']) putNode(cluster, name);
  cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', () => ({ status: { authenticated: false } }));
  cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => ({
    status: { allowed: (spec as { user: string }).user === 'alice' },
  }));
}

/** Listener for an HTTP/1.1 request, or 'HTTP/2' for a request to the gateway over HTTP/2 and TLS. */
export type Way = 'http' | 'https' | 'aggregated' | 'HTTP/2';

/** Sends one request on a new HTTP/2 session, which is closed afterwards. */
async function openOnSession(url: string, options: ConnectionOptions, request: Request): Promise<Message> {
  const session = connectHTTP2(url, options);
  try {
    return (await openHTTP2(session, request)).once('close', () => session.close());
  } catch (error) {
    session.close();
    throw error;
  }
}

/**
 * Starts the server. `kubeApiserver` is the address to which requests are forwarded. By default, nothing listens at
 * this address. `sections` contains the sections of the configuration.
 */
export async function startLab({
  kubeApiserver,
  sections,
  prepare,
  log = createLogger({ silent: true }),
  httpPort = '0',
}: {
  readonly kubeApiserver?: string;
  readonly sections?: object;
  /** Runs before the server starts. */
  readonly prepare?: (cluster: MemoryCluster) => void;
  readonly log?: Logger;
  readonly httpPort?: string;
} = {}): Promise<Lab> {
  const authority = await createAuthority('front-proxy-ca');
  const proxy: Pair = await authority.issue({ commonName: 'front-proxy-client' });
  const cluster = new MemoryCluster();
  fill(cluster, authority.certificate, { audit: { log: null }, ...sections });
  prepare?.(cluster);
  const ports = ['--http-port', httpPort, '--https-port', '0', '--aggregated-port', '0'];
  const bind = ['--bind-address', '127.0.0.1', '--aggregated-bind-address', '127.0.0.1'];
  const flags = parseFlags([...ports, ...bind, '--namespace', 'platform-system'], {});
  const client = cluster.client();
  if (kubeApiserver !== undefined) client.upstream = upstreamAt(kubeApiserver);
  const server: RunningServer = await startServer(flags, log, new AbortController().signal, async () => client);
  const host = '127.0.0.1';
  const frontProxy = { key: proxy.key, cert: proxy.certificate };
  const tls = { rejectUnauthorized: false };
  const targets: Readonly<Record<Exclude<Way, 'HTTP/2'>, Target>> = {
    http: { host, port: server.ports.http },
    https: { host, port: server.ports.https, tls },
    aggregated: { host, port: server.ports.aggregated, tls: { ...tls, ...frontProxy } },
  };
  const openAt: Lab['open'] = (way, path, { headers = {}, method, body } = {}) => {
    const always = way === 'aggregated' ? { 'x-remote-user': 'alice' } : {};
    const request: Request = {
      path,
      ...(method === undefined ? {} : { method }),
      body,
      headers: { ...always, ...headers },
    };
    return way === 'HTTP/2'
      ? openOnSession(`https://${host}:${server.ports.https}`, tls, request)
      : open(connect(targets[way]), request);
  };
  const at =
    (way: Way): Lab['gateway'] =>
    (path, request) =>
      checked(openAt(way, path, request));
  const gateway = at('http');
  while ((await at('https')('/readyz')).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
  return {
    cluster,
    putNode: (name, size) => putNode(cluster, name, size),
    ports: server.ports,
    open: openAt,
    gateway,
    secureGateway: at('https'),
    frontProxy,
    aggregated: at('aggregated'),
    http2: async (path, method, more = {}) => {
      const { status, headers, text } = await checked(openAt('HTTP/2', path, { method, headers: more }));
      return [Object.assign(headers, { ':status': status }), text] as const;
    },
    token: (fields) =>
      gateway('/oauth/token', {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(fields).toString(),
      }),
    revoke: (accessToken) =>
      gateway('/oauth/revoke', {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ token: accessToken, ...asClient }).toString(),
      }),
    stop: (times = { announce: 0, grace: 1_000 }) => server.stop(times),
  };
}
