/** Requests with the client that checks each byte of a response. */
import type { IncomingHttpHeaders } from 'node:http';
import { openURL } from '../../client/http1.ts';
import { whole, type Message } from '../../client/message.ts';
import { lab } from './lab.ts';
import { remember } from './secrets.ts';

export class HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;

  constructor(status: number, headers: IncomingHttpHeaders, body: Buffer) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  get text(): string {
    return this.body.toString('utf8');
  }

  /** Parses the body. Throws if it is not JSON. */
  get json(): unknown {
    return JSON.parse(this.text) as unknown;
  }
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  /** Bearer token. */
  readonly token?: string;
  /** Client certificate. */
  readonly certificate?: { readonly certificate: string; readonly key: string };
  /** CA of a server other than the replicas. */
  readonly authority?: string;
}

/** Returns the URL of a replica's gateway over plain HTTP. */
export const gateway = (replica: 0 | 1 = 0): string => `http://127.0.0.1:${lab().replicas[replica].http}`;
/** Returns the URL of a replica's gateway over TLS. */
export const secureGateway = (replica: 0 | 1 = 0): string => `https://127.0.0.1:${lab().replicas[replica].https}`;
/** Returns the URL of the listener for kube-apiserver. */
export const aggregated = (replica: 0 | 1 = 0): string =>
  `https://${lab().address}:${lab().replicas[replica].aggregated}`;

export const nodesPath = '/kapis/resources.platform.io/v1alpha3/nodes';
export const apisPath = '/apis/resources.platform.io/v1alpha3';

/** Sends a request on its own connection, and resolves with the head of the response. */
export async function open(url: string, call: Call = {}): Promise<Message> {
  const { headers = {}, token, certificate, authority = lab().authority, ...request } = call;
  remember(token);
  const tls = { ca: authority, cert: certificate?.certificate, key: certificate?.key };
  const { origin, pathname, search } = new URL(url);
  return openURL(`${origin}${pathname}${search}`, tls, {
    ...request,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });
}

export async function read(message: Message): Promise<HttpResponse> {
  const { status, headers, body } = await whole(message);
  return new HttpResponse(status, headers, body);
}

export const call = async (url: string, options?: Call): Promise<HttpResponse> => read(await open(url, options));

/** The fields of metav1.Status that tests check. */
export interface Status {
  readonly kind: string;
  readonly apiVersion: string;
  readonly status: string;
  readonly message: string;
  readonly reason: string;
  readonly code: number;
  readonly details?: Readonly<Record<string, unknown>>;
}
