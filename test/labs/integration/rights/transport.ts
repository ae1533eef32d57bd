/**
 * Sends a request over one of the transports of clients. Receives the complete response, or the initial events of a
 * watch.
 */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { handshake } from '../../../fakes/web-socket.ts';
import { open } from '../http.ts';
import { lab } from '../lab.ts';

export const transports = ['get', 'lines', 'server-sent events', 'WebSocket'] as const;
export type Transport = (typeof transports)[number];

export interface Received {
  /** Status of the response. An accepted WebSocket has status 200. */
  readonly status: number;
  readonly text: string;
}

/** Query of a watch in which a bookmark marks the end of the initial events. */
export const watchQuery =
  'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
const endOfState = 'initial-events-end';

async function textOf(stream: Readable): Promise<string> {
  let text = '';
  stream.setEncoding('latin1');
  for await (const chunk of stream) {
    text += chunk as string;
    if (text.includes(endOfState)) break;
  }
  return text;
}

interface Options {
  readonly token: string;
  readonly transport: Transport;
  readonly accept?: string;
}

export interface Connected {
  readonly status: number;
  readonly stream: Readable;
  readonly close: () => void;
}

/** Sends a request and resolves with the head of the response, before the body is read. */
export async function connect(url: string, options: Options): Promise<Connected> {
  if (options.transport === 'WebSocket') return upgraded(url, options);
  const { token, transport, accept = 'application/json' } = options;
  const headers = { accept: transport === 'server-sent events' ? 'text/event-stream' : accept };
  const stream = await open(url, { token, headers });
  return { status: stream.status, stream, close: () => void stream.destroy() };
}

// Sends a WebSocket handshake with node:http, because the client in test/client does not support WebSockets.
function upgraded(url: string, { token, accept = 'application/json' }: Options): Promise<Connected> {
  const headers = {
    authorization: `Bearer ${token}`,
    accept,
    ...handshake,
    // kube-apiserver requires an Origin.
    origin: new URL(url).origin,
  };
  return new Promise((resolve, reject) => {
    const sent = url.startsWith('https:')
      ? https.request(url, { agent: false, headers, ca: lab().authority })
      : http.request(url, { agent: false, headers });
    const take = (status: number, stream: Readable): void =>
      resolve({
        status,
        stream: stream.on('error', () => undefined),
        close: () => {
          sent.destroy();
          stream.destroy();
        },
      });
    sent.once('response', (response: IncomingMessage) => take(response.statusCode ?? 0, response));
    sent.once('upgrade', (_, socket, head) => {
      socket.unshift(head);
      take(200, socket);
    });
    sent.on('error', reject);
    sent.end();
  });
}

export async function request(url: string, options: Options): Promise<Received> {
  const { status, stream, close } = await connect(url, options);
  try {
    return { status, text: await textOf(stream) };
  } finally {
    close();
  }
}
