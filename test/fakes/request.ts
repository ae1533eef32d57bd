import http, { type ClientRequest, type OutgoingHttpHeaders, type RequestListener } from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import { open } from '../client/http1.ts';
import { whole, type Message } from '../client/message.ts';

export interface AppRequest {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** Address of the peer; 192.0.2.1 by default. */
  readonly from?: string;
  /** True to treat the connection as TLS. */
  readonly secure?: boolean;
}

export interface AppResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  /** Parses the body. Throws if it is not a JSON object. */
  readonly json: () => Record<string, unknown>;
}

/** Sends a request and returns the complete response. */
export function responseTo(request: ClientRequest, body?: string | Buffer): Promise<AppResponse> {
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const json = (): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
      });
    });
    request.end(body);
  });
}

/** Returns the complete response after checking each byte. */
export async function checked(message: Promise<Message>): Promise<AppResponse> {
  const { status, headers, body } = await whole(await message);
  const text = body.toString('utf8');
  return { status, headers, text, json: () => JSON.parse(text) as Record<string, unknown> };
}

const serve = (app: RequestListener, server: Duplex, from: string, encrypted = false): boolean =>
  http.createServer(app).emit('connection', Object.assign(server, { remoteAddress: from, encrypted }));

/** Sends these bytes and returns the client's end of the connection. */
export function send(app: RequestListener, bytes: string): Duplex {
  const [client, server] = duplexPair();
  serve(app, server, '192.0.2.1');
  client.resume().write(bytes);
  return client;
}

/**
 * Sends one request over HTTP/1.1 through an in-memory pipe instead of a socket, with the same bytes as on the wire.
 */
export function sendRequest(app: RequestListener, path: string, options: AppRequest = {}): Promise<AppResponse> {
  const { method = 'GET', headers = {}, body, from = '192.0.2.1', secure } = options;
  const [client, server] = duplexPair();
  serve(app, server, from, secure);
  return checked(open(client, { method, path, headers, body }));
}
