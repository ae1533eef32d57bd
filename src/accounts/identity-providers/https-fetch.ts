import { request } from 'node:https';

interface Options {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Bytes. Nothing that an OpenID provider says of itself or of a person is near that. */
const largest = 1024 * 1024;

/**
 * As fetch, for identity providers: over TLS alone, with a CA of its own (Node's has no way to name one), without following redirects,
 * and with an end to what is read.
 */
export const fetchOverTLS =
  (ca: string | undefined) =>
  (url: string, { method, headers, body, signal }: Options): Promise<Response> =>
    new Promise((resolve, reject) => {
      const text = typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : undefined;
      const sent = request(url, {
        method,
        headers: { ...headers, ...(text === undefined ? {} : { 'content-length': Buffer.byteLength(text) }) },
        agent: false,
        ...(ca === undefined ? {} : { ca }),
        ...(signal === undefined ? {} : { signal }),
      });
      sent.on('error', reject);
      sent.on('response', (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > largest) sent.destroy(new Error(`the answer of ${new URL(url).host} is too large`));
          else chunks.push(chunk);
        });
        answer.on('error', reject);
        answer.on('end', () => {
          const { statusCode = 0, headers: given } = answer;
          const pairs = Object.entries(given).flatMap(([name, value]) =>
            [value ?? []].flat().map((one): [string, string] => [name, one]),
          );
          const isEmpty = size === 0 || statusCode === 204 || statusCode === 304;
          resolve(new Response(isEmpty ? null : Buffer.concat(chunks), { status: statusCode, headers: pairs }));
        });
      });
      sent.end(text);
    });
