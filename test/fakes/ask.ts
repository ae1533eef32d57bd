import http, { type ClientRequest, type OutgoingHttpHeaders, type RequestListener } from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import { open } from '../client/http1.ts';
import { whole, type Message } from '../client/message.ts';

export interface Ask {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** The address of the peer; 192.0.2.1 unless stated. */
  readonly from?: string;
  /** As over TLS. */
  readonly secure?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  /** Throws for what is no JSON object. */
  readonly json: () => Record<string, unknown>;
}

/** The whole answer to a request that is about to be sent. */
export function answerTo(request: ClientRequest, body?: string | Buffer): Promise<Answer> {
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

/** The whole response, of which each byte was checked. */
export async function checked(message: Promise<Message>): Promise<Answer> {
  const { status, headers, body } = await whole(await message);
  const text = body.toString('utf8');
  return { status, headers, text, json: () => JSON.parse(text) as Record<string, unknown> };
}

const serve = (app: RequestListener, server: Duplex, from: string, encrypted = false): boolean =>
  http.createServer(app).emit('connection', Object.assign(server, { remoteAddress: from, encrypted }));

/** A client that sends these bytes and then does what the test does with it. */
export function send(app: RequestListener, bytes: string): Duplex {
  const [client, server] = duplexPair();
  serve(app, server, '192.0.2.1');
  client.resume().write(bytes);
  return client;
}

/** One request over HTTP/1.1 through a pipe in memory instead of a socket; the bytes are those of the wire. */
export function ask(app: RequestListener, path: string, options: Ask = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, from = '192.0.2.1', secure } = options;
  const [client, server] = duplexPair();
  serve(app, server, from, secure);
  return checked(open(client, { method, path, headers, body }));
}
