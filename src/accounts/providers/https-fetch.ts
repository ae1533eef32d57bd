import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
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
  async (url: string, { method, headers, body, signal }: Options): Promise<Response> => {
    const sent = request(url, { method, headers, agent: false, ca, signal });
    // The connection may also fail during the response, which then fails too.
    sent.on('error', () => undefined);
    sent.end(typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : undefined);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > largest) throw new Error(`the response of ${new URL(url).host} is too large`);
      chunks.push(chunk);
    }
    return new Response(size === 0 ? null : Buffer.concat(chunks), {
      status: response.statusCode ?? 0,
      headers: Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      ),
    });
  };
