/**
 * The only client for kube-apiserver, with persistent connections. Each call of client-node opens a new TLS connection,
 * and gives no access to the bytes of the response.
 */
import { Readable } from 'node:stream';
import { StatusError } from '../../runtime/errors.ts';
import { Slots } from '../../runtime/slots.ts';
import { systemClock, type Clock } from '../../runtime/time.ts';
import { inClientSpan } from '../../runtime/tracing.ts';
import { KubeError, unreachable } from './kube-error.ts';
import { fileAccess, inClusterAccess, type ClusterAccess } from './access.ts';
import { ServerCredential } from './credential.ts';
import { createUpstream, type Upstream } from './upstream.ts';
import { Connections, type Address } from '../wire/connections.ts';
import {
  streamed,
  whole,
  type UpstreamResponse,
  type ResponseHeaders,
  type UpstreamRequest,
} from '../wire/response.ts';
import { fieldsOf, headOf } from '../wire/request-head.ts';

export interface KubeRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Parameters of the query; undefined values are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** A header with several values is sent once per value. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Body, sent as JSON. */
  readonly body?: unknown;
  /** Media type of the body, 'application/json' by default. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
  /** Lane of the request, 'control' by default. Watches have dedicated connections. */
  readonly lane?: Lane;
  /** User of the request, for fairness in the lane 'callers'. */
  readonly source?: string;
  /** Milliseconds to wait for the headers of the response. Default: 10 s. */
  readonly timeout?: number;
}

export interface KubeResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Readable;
}

/** Client for requests that this server itself makes. */
export type KubeClient = Pick<ApiserverClient, 'stream' | 'json' | 'audiences' | 'issuer' | 'close'>;

/** Client that can also forward the requests of callers. */
export type Cluster = Pick<ApiserverClient, keyof KubeClient | 'upstream' | 'identity'>;

/** Identity of this server, as kube-apiserver sees it. */
export interface ServerIdentity {
  readonly username: string;
  readonly uid?: string;
}

/**
 * Maximum connections by purpose, so that data traffic never delays control traffic. 'control': sessions, token
 * reviews, keys, leases, configuration, users and cached resources. 'reviews': access reviews. 'callers': reads and
 * writes as a caller. 'logs': pod logs, which may be long.
 */
export const laneSizes = { control: 128, reviews: 64, callers: 128, logs: 512 } as const;
type Lane = keyof typeof laneSizes;

const callerSlots = {
  what: 'requests to kube-apiserver',
  total: laneSizes.callers,
  perUser: laneSizes.callers / 2,
  queue: { total: 4_000, perUser: 1_000, timeout: 30_000 },
};

/**
 * Creates the client from the file `kubeconfig`; by default from the ServiceAccount of the pod. Throws if there is
 * neither.
 */
export async function createKubeClient({
  kubeconfig,
  load = () => (kubeconfig === undefined ? inClusterAccess(process.env) : fileAccess(kubeconfig)),
  clock = systemClock,
}: {
  kubeconfig?: string | undefined;
  /** Returns the address and credentials to use instead of those in `kubeconfig`. */
  load?: () => ClusterAccess;
  /** Clock that tests replace. */
  clock?: Clock;
}): Promise<Cluster> {
  const access = load();
  const tls = await access.tls();
  return new ApiserverClient(new ServerCredential(load, access, tls, clock));
}

type Send<Body> = (
  connections: Connections,
  request: UpstreamRequest,
  signal?: AbortSignal,
) => Promise<UpstreamResponse<Body>>;

class ApiserverClient {
  readonly upstream: Upstream;
  readonly #address: Address;
  readonly #credential: ServerCredential;
  readonly #lanes: Readonly<Record<Lane, Connections>>;
  readonly #callers = new Slots(callerSlots);
  /**
   * Connections of watches. The number of these connections is unlimited, because a watch occupies its connection until
   * the watch ends. A request that waited for a free connection could wait forever. Callers limit the number of
   * watches.
   */
  readonly #watches: Connections;
  #identity: { readonly credential: object; readonly review: Promise<ServerIdentity> } | undefined;

  constructor(credential: ServerCredential) {
    const { address } = credential;
    this.#address = address;
    this.#credential = credential;
    this.upstream = createUpstream({ address, credential });
    this.#lanes = {
      control: new Connections(address, laneSizes.control),
      reviews: new Connections(address, laneSizes.reviews),
      callers: new Connections(address, laneSizes.callers),
      logs: new Connections(address, laneSizes.logs),
    };
    this.#watches = new Connections(address, Infinity);
  }

  /** Returns a response of any status, with its body as a stream. Throws KubeError only if there is no response. */
  stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    return this.#sendWithRetry(streamed, path, options);
  }

  /** Returns the decoded body of a 2xx response. Throws KubeError for any other response. */
  async json<T>(path: string, options: KubeRequest = {}): Promise<T> {
    const { status, body } = await this.#sendWithRetry(whole, path, options);
    const text = body.toString('utf8');
    if (status < 200 || status > 299) throw KubeError.from(status, text);
    return JSON.parse(text) as T;
  }

  /**
   * Returns the audiences of this server's own token, which are those of kube-apiserver. Returns no audiences if the
   * token is opaque or there is no ServiceAccount token.
   */
  async audiences(): Promise<readonly string[]> {
    return (await this.#credential.claims()).audiences;
  }

  /**
   * Returns the issuer of this server's own token, which issues all ServiceAccount tokens of the cluster. Returns
   * undefined if the token is opaque or there is no ServiceAccount token.
   */
  async issuer(): Promise<string | undefined> {
    return (await this.#credential.claims()).issuer;
  }

  /**
   * Returns this server's own identity (SelfSubjectReview). The identity is read again whenever the credential is read
   * again. Throws KubeError.
   */
  async identity(): Promise<ServerIdentity> {
    const credential = await this.#credential.headers();
    if (this.#identity?.credential === credential) return await this.#identity.review;
    const review = this.#reviewSelf();
    const read = { credential, review };
    this.#identity = read;
    review.catch(() => {
      if (this.#identity === read) this.#identity = undefined;
    });
    return await review;
  }

  async #reviewSelf(): Promise<ServerIdentity> {
    const { status } = await this.json<{ readonly status: { readonly userInfo: ServerIdentity } }>(
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      {
        method: 'POST',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      },
    );
    const { username, uid } = status.userInfo;
    return uid === undefined ? { username } : { username, uid };
  }

  async close(): Promise<void> {
    for (const connections of [...Object.values(this.#lanes), this.#watches, this.upstream]) connections.close();
  }

  /** Retries a request once with a fresh credential if kube-apiserver rejects the credential. */
  async #sendWithRetry<Body>(send: Send<Body>, path: string, options: KubeRequest): Promise<UpstreamResponse<Body>> {
    // The body is encoded here, so that an encoding error is not reported as a failure of kube-apiserver.
    const body = options.body === undefined ? undefined : Buffer.from(JSON.stringify(options.body));
    const response = await this.#send(send, path, options, body);
    if (response.status !== 401) return response;
    if (response.body instanceof Readable) response.body.destroy();
    this.#credential.renew();
    return await this.#send(send, path, options, body);
  }

  async #send<Body>(
    send: Send<Body>,
    path: string,
    options: KubeRequest,
    encoded: Buffer | undefined,
  ): Promise<UpstreamResponse<Body>> {
    const { lane = 'control', source = '', signal, method = 'GET' } = options;
    const { url, prefix } = this.#address;
    const connections = isWatch(options) ? this.#watches : this.#lanes[lane];
    /** Frees the slot once the response has been read. */
    let freeSlot: (() => void) | undefined;
    try {
      if (connections === this.#lanes.callers) freeSlot = await this.#callers.wait(source, signal);
      const credential = await this.#credential.headers();
      const response = await inClientSpan(
        { peer: 'kube-apiserver', operation: method, url, path: `${prefix}${path}` },
        // The credential is the last layer, so that no other header replaces it.
        (trace) => send(connections, this.#requestOf(path, options, encoded, [trace ?? {}, credential]), signal),
        ({ status }) => status,
      );
      if (response.body instanceof Readable && !response.body.closed) response.body.once('close', () => freeSlot?.());
      else freeSlot?.();
      return response;
    } catch (cause) {
      freeSlot?.();
      throw cause instanceof StatusError ? cause : unreachable(cause);
    }
  }

  #requestOf(
    path: string,
    options: KubeRequest,
    body: Buffer | undefined,
    last: readonly Readonly<Record<string, string>>[],
  ): UpstreamRequest {
    const { method = 'GET', timeout = 10_000, contentType = 'application/json' } = options;
    const { url, prefix } = this.#address;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) query.set(name, String(value));
    const target = `${prefix}${path}${query.size === 0 ? '' : `?${query.toString()}`}`;
    const headers = fieldsOf(
      { accept: 'application/json', 'user-agent': 'platform-apiserver' },
      body === undefined ? {} : { 'content-type': contentType },
      options.headers ?? {},
      ...last,
    );
    const length = body?.length;
    const head = headOf({ method, target, host: url.host, headers, length, hasBody: body !== undefined });
    return { method, head, length, body: body === undefined ? undefined : [body], timeout };
  }
}

const isWatch = ({ query }: KubeRequest): boolean => query?.['watch'] !== undefined;
