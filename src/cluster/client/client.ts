/**
 * The one door to kube-apiserver, over connections that are kept: client-node's calls open a new TLS connection each and hide the bytes.
 */
import { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { StatusError } from '../../runtime/errors.ts';
import { Slots } from '../../runtime/slots.ts';
import { systemClock, type Clock } from '../../runtime/time.ts';
import { KubeError, unreachable } from './kube-error.ts';
import { fileAccess, inClusterAccess, type ClusterAccess, type TLSOptions } from './access.ts';
import { createUpstream, type Upstream } from './upstream.ts';
import { addressOf, connectionOptions, Connections, type Address } from '../wire/connections.ts';
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
  readonly headers: ResponseHeaders;
  readonly body: Readable;
}

/** The requests of this server itself. */
export type KubeClient = Pick<ApiserverClient, 'stream' | 'json' | 'audiences' | 'issuer' | 'close'>;

/** Also the requests that are passed on. */
export type Cluster = Pick<ApiserverClient, keyof KubeClient | 'upstream'>;

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
export async function createKubeClient({
  kubeconfig,
  clock = systemClock,
}: {
  kubeconfig?: string | undefined;
  /** Tests pass their own. */
  clock?: Clock;
}): Promise<Cluster> {
  const load = (): ClusterAccess => (kubeconfig === undefined ? inClusterAccess(process.env) : fileAccess(kubeconfig));
  const access = load();
  const tls = await access.tls();
  return new ApiserverClient(new Credential(load, access, tls, clock));
}

/** The credential of this server and the CA of the cluster, read from their files again after ten seconds. */
class Credential {
  readonly address: { -readonly [K in keyof Address]: Address[K] };
  readonly #load: () => ClusterAccess;
  readonly #clock: Clock;
  #access: ClusterAccess | undefined;
  #tls: TLSOptions;
  #read: { readonly headers: Record<string, string>; readonly at: number } | undefined;

  constructor(load: () => ClusterAccess, access: ClusterAccess, tls: TLSOptions, clock: Clock) {
    this.#load = load;
    this.#access = access;
    this.#tls = tls;
    this.#clock = clock;
    this.address = addressOf(access.server, tls);
  }

  /** Files that cannot be read, for instance half of a new pair, leave the last credential in use. */
  async headers(): Promise<Record<string, string>> {
    const last = this.#read;
    const now = this.#clock.monotonic();
    if (last !== undefined && now - last.at <= credentialLife) return last.headers;
    const headers = await this.#readFiles().catch((error: unknown) => {
      if (last === undefined) throw error;
      return last.headers;
    });
    this.#read = { headers, at: now };
    return headers;
  }

  async #readFiles(): Promise<Record<string, string>> {
    this.#access ??= this.#load();
    const tls = await this.#access.tls();
    // New options replace all connections.
    if (!isDeepStrictEqual(tls, this.#tls)) this.address.tls = connectionOptions(tls);
    this.#tls = tls;
    return await this.#access.headers();
  }

  /** Makes the next request read the kubeconfig again, because kube-apiserver rejected the credential. */
  renew(): void {
    this.#access = undefined;
    this.#read = undefined;
  }
}

type Send<Body> = (
  connections: Connections,
  request: UpstreamRequest,
  signal?: AbortSignal,
) => Promise<UpstreamResponse<Body>>;

class ApiserverClient {
  readonly upstream: Upstream;
  readonly #address: Address;
  readonly #credential: Credential;
  readonly #lanes: Readonly<Record<Lane, Connections>>;
  readonly #callers = new Slots(callerSlots);
  /** A watch has its connection for as long as it lasts, and its caller limits their number: a request behind one would wait for ever. */
  readonly #watches: Connections;

  constructor(credential: Credential) {
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

  /** Returns a response of any status, its body not yet read. Throws KubeError only if there is no response. */
  stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    return this.#sendAgain(streamed, path, options);
  }

  /** Returns the decoded body of a 2xx response. Throws KubeError for any other. */
  async json<T>(path: string, options: KubeRequest = {}): Promise<T> {
    const { status, body } = await this.#sendAgain(whole, path, options);
    const text = body.toString('utf8');
    if (status < 200 || status > 299) throw KubeError.from(status, text);
    return JSON.parse(text) as T;
  }

  /** The audiences of our own token, which are kube-apiserver's; empty if we have no ServiceAccount token, or an opaque one. */
  async audiences(): Promise<readonly string[]> {
    return claimsOf(await this.#credential.headers()).audiences;
  }

  /** The issuer of our own token, and so of the ServiceAccount tokens of the cluster; undefined as above. */
  async issuer(): Promise<string | undefined> {
    return claimsOf(await this.#credential.headers()).issuer;
  }

  async close(): Promise<void> {
    for (const each of [...Object.values(this.#lanes), this.#watches, this.upstream]) each.close();
  }

  /** Sends a request once more if kube-apiserver refuses the credential: it may have been renewed a moment ago. */
  async #sendAgain<Body>(send: Send<Body>, path: string, options: KubeRequest): Promise<UpstreamResponse<Body>> {
    // A value that cannot be encoded is not a failure of kube-apiserver.
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
    const { lane = 'control', source = '', signal } = options;
    const connections = isWatch(options) ? this.#watches : this.#lanes[lane];
    /** Until the response is read. */
    let freeSlot: (() => void) | undefined;
    try {
      if (connections === this.#lanes.callers) freeSlot = await this.#callers.wait(source, signal);
      const response = await send(connections, await this.#requestOf(path, options, encoded), signal);
      if (response.body instanceof Readable && !response.body.closed) response.body.once('close', () => freeSlot?.());
      else freeSlot?.();
      return response;
    } catch (cause) {
      freeSlot?.();
      throw cause instanceof StatusError ? cause : unreachable(cause);
    }
  }

  async #requestOf(path: string, options: KubeRequest, body: Buffer | undefined): Promise<UpstreamRequest> {
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
      // Last: a caller cannot replace it.
      await this.#credential.headers(),
    );
    const length = body?.length;
    const head = headOf({ method, target, host: url.host, headers, length, hasBody: body !== undefined });
    return { method, head, length, body: body === undefined ? undefined : [body], timeout };
  }
}

const isWatch = ({ query }: KubeRequest): boolean => query?.['watch'] !== undefined;

interface OwnClaims {
  readonly issuer: string | undefined;
  readonly audiences: readonly string[];
}

/** Returns nothing for a token that is not a JWT: those of some clouds are opaque. */
function claimsOf({ Authorization: header }: Readonly<Record<string, string>>): OwnClaims {
  try {
    const payload = Buffer.from(header?.split('.')[1] ?? '', 'base64url').toString('utf8');
    const { iss, aud } = JSON.parse(payload) as { iss?: unknown; aud?: unknown };
    const audiences = [aud].flat().filter((one) => typeof one === 'string');
    return { issuer: typeof iss === 'string' ? iss : undefined, audiences };
  } catch {
    return { issuer: undefined, audiences: [] };
  }
}
