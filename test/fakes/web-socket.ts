/** Two WebSocket clients: the client of undici, and a client that sends the test's own bytes. */
import http, { type OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket, type WebSocketInit } from 'undici';

export const handshake: OutgoingHttpHeaders = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** Returns the subprotocol by which browsers send a token to kube-apiserver (its protocol.go). */
export const tokenProtocol = (token: string): string =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;

export interface Listening {
  /** Messages received so far. */
  readonly messages: string[];
  readonly client: WebSocket;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<{ readonly code: number; readonly wasClean: boolean }>;
  /** Resolves when this many messages have been received or the connection has closed. */
  until(count: number): Promise<void>;
}

/** Opens a WebSocket. Rejects if the handshake is rejected. */
export async function listenTo(url: string, init: WebSocketInit): Promise<Listening> {
  const client = new WebSocket(url, init);
  const messages: string[] = [];
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const check of waiting) check();
  };
  client.addEventListener('message', ({ data }) => {
    messages.push(data as string);
    wake();
  });
  const closed: Listening['closed'] = new Promise((resolve) =>
    client.addEventListener('close', ({ code, wasClean }) => {
      resolve({ code, wasClean });
      wake();
    }),
  );
  await new Promise<void>((resolve, reject) => {
    client.addEventListener('open', () => resolve());
    client.addEventListener('error', ({ error }) => reject(new Error('the handshake failed', { cause: error })));
  });
  const until = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (messages.length < count && client.readyState !== WebSocket.CLOSED) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  return { messages, client, closed, until };
}

/** Returns a frame as clients send it (RFC 6455 section 5.2). */
export function clientFrame(first: number, payload: Buffer, mask = Buffer.from([1, 2, 3, 4])): Buffer {
  const { length } = payload;
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  const [short = 0, ...long] = size;
  const masked = payload.map((byte, at) => byte ^ (mask[at % 4] as number));
  return Buffer.concat([Buffer.from([first, short | 0x80, ...long]), mask, masked]);
}

/**
 * Returns the connection after the handshake, and the data that was received with the response. Rejects if the status
 * is not 101.
 */
export function upgraded(port: number, path: string, headers: OutgoingHttpHeaders): Promise<[Socket, Buffer]> {
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1',
      port,
      path,
      agent: false,
      headers: { ...handshake, ...headers },
    });
    request.once('upgrade', (_, socket, first) => resolve([socket, first]));
    request.once('response', ({ statusCode }) => reject(new Error(`status ${statusCode}`)));
    request.once('error', reject);
    request.end();
  });
}

export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** Parses the frames of a server. Throws unless all frames are complete, final and unmasked. */
export function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length;) {
    const [first = 0, second = 0] = bytes.subarray(at);
    if ((first & 0xf0) !== 0x80 || (second & 0x80) !== 0) throw new Error(`a bad frame at ${at}`);
    const [head, length] =
      second < 126
        ? [2, second]
        : second === 126
          ? [4, bytes.readUInt16BE(at + 2)]
          : [10, Number(bytes.readBigUInt64BE(at + 2))];
    frames.push({ opcode: first & 15, payload: bytes.subarray(at + head, at + head + length) });
    at += head + length;
    if (at > bytes.length) throw new Error('a frame is cut off');
  }
  return frames;
}
