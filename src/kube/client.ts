/**
 * The one connection pool to kube-apiserver. The requests are our own on one undici Agent, because client-node's calls open a new
 * TLS connection each and hide the bytes.
 */
import { Agent, request, type Dispatcher } from 'undici';
import { Readable } from 'node:stream';
import { KubeError, unreachable } from './kube-error.ts';
import { fileAccess, inClusterAccess, type Access } from './kubeconfig.ts';
import { readBody } from './read-body.ts';
import { createUpstream, type Upstream } from './upstream.ts';

export interface KubeRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** A header with several values is sent once for each. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** 'application/json' unless stated, for instance 'application/merge-patch+json'. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  /** On a connection beside those of the server's own requests: it may go on for long, and there may be many. */
  readonly apart?: boolean;
  /** Until the headers of the answer, in milliseconds; 10 s unless stated. */
  readonly timeout?: number;
}

export interface KubeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
}

export interface KubeClient {
  /** Whatever kube-apiserver answers, its body not yet read. Throws KubeError only where there is no answer. */
  stream(path: string, options?: KubeRequest): Promise<KubeResponse>;
  /** The decoded body of a 2xx answer. Throws KubeError for any other. */
  json<T>(path: string, options?: KubeRequest): Promise<T>;
  /** The audiences of our own token, which are kube-apiserver's; empty if we have no ServiceAccount token, or an opaque one. */
  audiences(): Promise<readonly string[]>;
  /** Who issued our own token, and so the ServiceAccount tokens of the cluster; undefined as above. */
  issuer(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The whole way to kube-apiserver: our own requests, and those that are passed on. */
export interface Cluster extends KubeClient {
  readonly upstream: Upstream;
}

const credentialLife = 10_000;

/** `kubeconfig`: a file; without one the pod's ServiceAccount. Throws if there is neither. */
export async function createKubeClient({ kubeconfig }: { kubeconfig?: string | undefined }): Promise<Cluster> {
  const load = (): Access => (kubeconfig === undefined ? inClusterAccess(process.env) : fileAccess(kubeconfig));
  let access = load();
  const { server } = access;
  const tls = await access.tls();
  const pool: Agent.Options = {
    connect: {
      ...tls,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      timeout: 5_000,
    },
    connections: 128,
    keepAliveTimeout: 60_000,
    bodyTimeout: 0,
  };
  const agent = new Agent(pool);
  // Over HTTP/2 undici joins the values of one header by commas: several groups would become one that nobody meant.
  const severalValues = new Agent({ ...pool, allowH2: false });
  const apart = new Agent({ ...pool, allowH2: false, connections: 512 });
  const agentFor = (options: KubeRequest, headers: readonly [string, string | string[]][]): Agent =>
    options.apart === true ? apart : headers.some(([, value]) => Array.isArray(value)) ? severalValues : agent;

  let credential: { headers: Record<string, string>; readAt: number } | undefined;
  async function authorization(): Promise<Record<string, string>> {
    if (credential === undefined || Date.now() - credential.readAt > credentialLife) {
      credential = { headers: await access.headers(), readAt: Date.now() };
    }
    return credential.headers;
  }

  function renew(): void {
    access = load();
    credential = undefined;
  }

  const upstream = createUpstream({ server, tls, credential: { headers: authorization, renew } });

  async function once(path: string, options: KubeRequest): Promise<Dispatcher.ResponseData> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) query.set(name, String(value));
    const suffix = query.size === 0 ? '' : `?${query.toString()}`;
    const headers = Object.entries(options.headers ?? {}).map(([name, value]): [string, string | string[]] => [
      name,
      typeof value === 'string' ? value : [...value],
    ]);
    try {
      return await request(`${server}${path}${suffix}`, {
        method: options.method ?? 'GET',
        dispatcher: agentFor(options, headers),
        headersTimeout: options.timeout ?? 10_000,
        headers: {
          accept: 'application/json',
          'user-agent': 'platform-apiserver',
          ...(await authorization()),
          ...(options.body === undefined ? {} : { 'content-type': options.contentType ?? 'application/json' }),
          ...Object.fromEntries(headers),
        },
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
    } catch (cause) {
      throw unreachable(cause);
    }
  }

  async function stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    let answer = await once(path, options);
    if (answer.statusCode === 401) {
      // The token may have been rotated a moment ago: read it again, once.
      await answer.body.dump();
      renew();
      answer = await once(path, options);
    }
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  }

  return {
    upstream,
    stream,
    async json<T>(path: string, options?: KubeRequest): Promise<T> {
      const { status, body } = await stream(path, options);
      const text = await readText(body);
      if (status < 200 || status > 299) throw KubeError.from(status, text);
      return JSON.parse(text) as T;
    },
    audiences: async () => claimsOf((await authorization())['Authorization']).audiences,
    issuer: async () => claimsOf((await authorization())['Authorization']).issuer,
    async close() {
      upstream.close();
      await Promise.all([agent.destroy(), severalValues.destroy(), apart.destroy()]);
    },
  };
}

interface OwnClaims {
  readonly issuer: string | undefined;
  readonly audiences: readonly string[];
}

/** Nothing for a token that is no JWT: those of some clouds are opaque. */
function claimsOf(header: string | undefined): OwnClaims {
  try {
    const payload = Buffer.from(header?.split('.')[1] ?? '', 'base64url').toString('utf8');
    const { iss, aud } = JSON.parse(payload) as { iss?: unknown; aud?: unknown };
    const audiences = [aud].flat().filter((one) => typeof one === 'string');
    return { issuer: typeof iss === 'string' ? iss : undefined, audiences };
  } catch {
    return { issuer: undefined, audiences: [] };
  }
}

async function readText(body: Readable): Promise<string> {
  try {
    return (await readBody(body)).toString('utf8');
  } catch (cause) {
    throw unreachable(cause);
  }
}
