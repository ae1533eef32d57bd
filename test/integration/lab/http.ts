/** Requests by Node's own HTTP client, which shows everything that came back. */
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { lab } from './lab.ts';
import { remember } from './secrets.ts';

export class Answer {
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

  /** Throws if it is no JSON. */
  get json(): unknown {
    return JSON.parse(this.text) as unknown;
  }
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  /** A bearer token. */
  readonly token?: string;
  /** A client certificate. */
  readonly certificate?: { readonly certificate: string; readonly key: string };
  /** Of the CA of another server than the platform's. */
  readonly authority?: string;
}

/** The gateway of a replica over plain HTTP. */
export const gateway = (replica: 0 | 1 = 0): string => `http://127.0.0.1:${lab().replicas[replica].http}`;
/** The gateway of a replica over TLS. */
export const secureGateway = (replica: 0 | 1 = 0): string => `https://127.0.0.1:${lab().replicas[replica].https}`;
/** Where only kube-apiserver calls. */
export const aggregated = (replica: 0 | 1 = 0): string =>
  `https://${lab().address}:${lab().replicas[replica].aggregated}`;

export const nodesPath = '/kapis/resources.platform.io/v1alpha3/nodes';
export const apisPath = '/apis/resources.platform.io/v1alpha3';

/** Begins a request; its answer comes as a stream. A connection each, so that none is of a server that is gone. */
export function open(url: string, call: Call = {}): Promise<IncomingMessage> {
  const { method = 'GET', headers = {}, body, token, certificate, authority = lab().authority } = call;
  remember(token);
  const options = {
    method,
    agent: false,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
      ...Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]),
      ),
    },
  };
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:')
      ? https.request(
          url,
          {
            ...options,
            ca: authority,
            ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key }),
          },
          resolve,
        )
      : http.request(url, options, resolve);
    request.on('error', reject);
    request.end(body);
  });
}

export async function read(message: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return new Answer(message.statusCode ?? 0, message.headers, Buffer.concat(chunks));
}

export const call = async (url: string, options?: Call): Promise<Answer> => read(await open(url, options));

/** metav1.Status, as far as tests look at it. */
export interface Status {
  readonly kind: string;
  readonly apiVersion: string;
  readonly status: string;
  readonly message: string;
  readonly reason: string;
  readonly code: number;
  readonly details?: Readonly<Record<string, unknown>>;
}
