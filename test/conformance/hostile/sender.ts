/**
 * Sends many requests over a few connections at minimal cost for this process, so that mainly the cost of the server is
 * measured.
 */
import net from 'node:net';
import tls from 'node:tls';

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Target {
  readonly port: number;
  /** Options for TLS, with key and certificate if the target needs them. */
  readonly secure?: { readonly key?: string; readonly cert?: string };
}

const connections = 16;

function bytesOf({ method, path, headers = {}, body = '' }: Sent): Buffer {
  const all = { host: 'platform.example', 'content-length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

/** Returns the status of a complete response, or undefined if more data is expected. */
function statusOf(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const head = text.slice(0, end);
  const status = Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
  if (status === 100) return statusOf(text.slice(end + 4));
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  const isComplete =
    length === undefined ? status === 304 || text.endsWith('\r\n0\r\n\r\n') : text.length >= end + 4 + Number(length);
  return isComplete ? status : undefined;
}

/**
 * Sends requests sequentially on one connection. Returns status 0 if the server closes the connection without a
 * response.
 */
class Sender {
  readonly #target: Target;
  #socket: net.Socket | undefined;
  #text = '';
  #done: ((status: number) => void) | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  send(sent: Sent): Promise<number> {
    const socket = (this.#socket ??= this.#connect());
    return new Promise((resolve) => {
      this.#text = '';
      this.#done = resolve;
      socket.write(bytesOf(sent));
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #connect(): net.Socket {
    const { port, secure } = this.#target;
    const host = '127.0.0.1';
    const socket =
      secure === undefined
        ? net.connect({ host, port })
        : tls.connect({ host, port, rejectUnauthorized: false, ...secure });
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => {
      this.#text += data.toString('latin1');
      const status = statusOf(this.#text);
      // A stream does not end, so the sender reads only its headers.
      if (
        status === undefined &&
        /^content-type: (?:text\/event-stream|application\/(?:jsonl|x-ndjson))/im.test(this.#text)
      )
        socket.destroy();
      if (status !== undefined) this.#finish(status);
    });
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
      this.#finish(0);
    });
    return socket;
  }

  #finish(status: number): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(status);
  }
}

/** Sends `count` requests and returns the number of responses by status. */
export async function sendAll(
  target: Target,
  count: number,
  make: (index: number) => Sent,
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let sent = 0;
  const work = async (): Promise<void> => {
    const sender = new Sender(target);
    while (sent < count) {
      const status = await sender.send(make((sent += 1)));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    sender.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  return statuses;
}
