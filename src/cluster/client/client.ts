/**
 * The one door to kube-apiserver, over connections that are kept: client-node's calls open a new TLS connection each and hide the bytes.
 */
import { Readable } from 'node:stream';
import { StatusError } from '../../runtime/errors.ts';
import { Slots } from '../../runtime/slots.ts';
import { KubeError, unreachable } from './kube-error.ts';
import { fileAccess, inClusterAccess, type ClusterAccess } from './access.ts';
import { createUpstream, type Upstream } from './upstream.ts';
import { addressOf, Connections } from '../wire/connections.ts';
import { streamed, whole, type UpstreamResponse, type AnswerHeaders, type UpstreamRequest } from '../wire/response.ts';
import { fieldsOf, headOf } from '../wire/request-head.ts';

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
  /** 'control' unless stated; watches have connections of their own. */
  readonly lane?: Lane;
  /** The user of the request: users share the lane 'callers'. */
  readonly source?: string;
  /** Until the headers of the answer, in milliseconds; 10 s unless stated. */
  readonly timeout?: number;
}

export interface KubeResponse {
  readonly status: number;
  readonly headers: AnswerHeaders;
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

/**
 * Connections by purpose, so that data never delays control. 'control': sessions, token reviews, keys, leases, configuration, users and
 * the cached resources. 'reviews': access reviews. 'callers': reads and writes as a caller. 'logs': pod logs, which may last long.
 */
export const laneSizes = { control: 128, reviews: 64, callers: 128, logs: 512 } as const;
type Lane = keyof typeof laneSizes;

const callerSlots = {
  what: 'requests to kube-apiserver',
  total: laneSizes.callers,
  perUser: laneSizes.callers / 2,
  queue: { total: 4_000, perUser: 1_000, timeout: 30_000 },
};

/** `kubeconfig`: a file; without one the pod's ServiceAccount. Throws if there is neither. */
export async function createKubeClient({ kubeconfig }: { kubeconfig?: string | undefined }): Promise<Cluster> {
  const load = (): ClusterAccess => (kubeconfig === undefined ? inClusterAccess(process.env) : fileAccess(kubeconfig));
  let access = load();
  const address = addressOf(access.server, await access.tls());
  const { url, prefix } = address;
  const lanes = {
    control: new Connections(address, laneSizes.control),
    reviews: new Connections(address, laneSizes.reviews),
    callers: new Connections(address, laneSizes.callers),
    logs: new Connections(address, laneSizes.logs),
  };
  const callers = new Slots(callerSlots);
  // Each has its connection for as long as it lasts, and whoever begins them bounds them: a request behind them would wait for ever.
  const watches = new Connections(address, Infinity);
  const connectionsFor = (options: KubeRequest): Connections =>
    isWatch(options) ? watches : lanes[options.lane ?? 'control'];

  /** Held until the response is read. */
  const slotOf = async ({ source = '', ...options }: KubeRequest): Promise<(() => void) | undefined> =>
    options.lane === 'callers' && !isWatch(options) ? await callers.wait(source, options.signal) : undefined;

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

  const upstream = createUpstream({ address, credential: { headers: authorization, renew } });

  async function questionOf(path: string, options: KubeRequest, body: Buffer | undefined): Promise<UpstreamRequest> {
    const { method = 'GET', timeout = 10_000 } = options;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) query.set(name, String(value));
    const target = `${prefix}${path}${query.size === 0 ? '' : `?${query.toString()}`}`;
    const headers = fieldsOf(
      { accept: 'application/json', 'user-agent': 'platform-apiserver' },
      body === undefined ? {} : { 'content-type': options.contentType ?? 'application/json' },
      options.headers ?? {},
      // Last: a caller cannot replace it.
      await authorization(),
    );
    const length = body?.length;
    const head = headOf({ method, target, host: url.host, headers, length, hasBody: body !== undefined });
    return { method, head, length, body: body === undefined ? undefined : [body], patience: timeout };
  }

  async function answered<Body>(
    ask: (connections: Connections, question: UpstreamRequest, signal?: AbortSignal) => Promise<UpstreamResponse<Body>>,
    path: string,
    options: KubeRequest,
  ): Promise<UpstreamResponse<Body>> {
    // A value that cannot be encoded is not a failure of kube-apiserver.
    const encoded = options.body === undefined ? undefined : Buffer.from(JSON.stringify(options.body));
    const once = async (): Promise<UpstreamResponse<Body>> => {
      let free: (() => void) | undefined;
      try {
        free = await slotOf(options);
        const answer = await ask(connectionsFor(options), await questionOf(path, options, encoded), options.signal);
        if (answer.body instanceof Readable && !answer.body.closed) answer.body.once('close', () => free?.());
        else free?.();
        return answer;
      } catch (cause) {
        free?.();
        throw cause instanceof StatusError ? cause : unreachable(cause);
      }
    };
    const answer = await once();
    if (answer.status !== 401) return answer;
    // The token may have been rotated a moment ago: read it again, once.
    if (answer.body instanceof Readable) answer.body.destroy();
    renew();
    return await once();
  }

  return {
    upstream,
    stream: async (path, options = {}) => await answered(streamed, path, options),
    async json<T>(path: string, options: KubeRequest = {}): Promise<T> {
      const { status, body } = await answered(whole, path, options);
      const text = body.toString('utf8');
      if (status < 200 || status > 299) throw KubeError.from(status, text);
      return JSON.parse(text) as T;
    },
    audiences: async () => claimsOf((await authorization())['Authorization']).audiences,
    issuer: async () => claimsOf((await authorization())['Authorization']).issuer,
    async close() {
      for (const each of [...Object.values(lanes), watches, upstream]) each.close();
    },
  };
}

const isWatch = ({ query }: KubeRequest): boolean => query?.['watch'] !== undefined;

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
