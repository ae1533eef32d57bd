/** Sends a request by each transport of a client, and receives the whole response or the initial state of a watch. */
import http, { type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { handshake } from '../../../fakes/web-socket.ts';
import { lab } from '../lab.ts';

export const transports = ['get', 'lines', 'server-sent events', 'WebSocket'] as const;
export type Transport = (typeof transports)[number];

export interface Received {
  /** 200 also for a WebSocket that was accepted. */
  readonly status: number;
  readonly text: string;
}

/** The query of a watch that says where the state ends with which it begins. */
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

/** Resolves when there is a response; what it tells is not read yet. */
export function connect(url: string, { token, transport, accept = 'application/json' }: Options): Promise<Connected> {
  const options: RequestOptions = {
    agent: false,
    headers: {
      authorization: `Bearer ${token}`,
      accept: transport === 'server-sent events' ? 'text/event-stream' : accept,
      // kube-apiserver takes none without an origin.
      ...(transport === 'WebSocket' ? { ...handshake, origin: new URL(url).origin } : {}),
    },
  };
  return new Promise((resolve, reject) => {
    const sent = url.startsWith('https:')
      ? https.request(url, { ...options, ca: lab().authority })
      : http.request(url, options);
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
