/** Sends raw bytes over a socket, such as requests that no HTTP client would send. */
import net, { type Socket } from 'node:net';
import tls from 'node:tls';
import { lab } from './lab.ts';

export interface RawResponse {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function connect(url: string, alpn?: string): Socket {
  const { protocol, hostname, port } = new URL(url);
  return protocol === 'https:'
    ? tls.connect({
        host: hostname,
        port: Number(port),
        ca: lab().authority,
        ...(alpn === undefined ? {} : { ALPNProtocols: [alpn] }),
      })
    : net.connect({ host: hostname, port: Number(port) });
}

/** Returns everything that the server sends until it closes the connection. */
export function drain(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => (text += chunk));
    // The server can reset the connection after the response.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}

/** Returns the responses on a connection in order. */
export function responsesIn(text: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = text;
  while (rest.startsWith('HTTP/1.1 ')) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) break;
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((header) => [
        header.slice(0, header.indexOf(':')).toLowerCase(),
        header.slice(header.indexOf(':') + 1).trim(),
      ]),
    );
    rest = rest.slice(end + 4);
    let body = '';
    if (headers['transfer-encoding'] === 'chunked') {
      for (;;) {
        const size = Number.parseInt(rest, 16);
        const start = rest.indexOf('\r\n') + 2;
        body += rest.slice(start, start + size);
        rest = rest.slice(start + size + 2);
        if (!(size > 0)) break;
      }
    } else {
      const length = Number(headers['content-length'] ?? 0);
      body = rest.slice(0, length);
      rest = rest.slice(length);
    }
    responses.push({ status: Number(line.split(' ')[1]), headers, body: Buffer.from(body, 'latin1').toString('utf8') });
  }
  return responses;
}
