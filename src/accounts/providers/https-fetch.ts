import { OutgoingClient } from '../../runtime/outgoing.ts';

interface Options {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Maximum bytes of a response. Provider metadata and claims are far smaller. */
const maxBytes = 1024 * 1024;
/** Default timeout in milliseconds, for requests of openid-client without a deadline. */
const timeout = 10_000;

/**
 * Returns a fetch function for openid-client that sends requests only over TLS. If `ca` is set, the function trusts
 * only this CA.
 */
export function fetchOverTLS(ca: string | undefined) {
  const client = new OutgoingClient({ ca, peer: 'identity-provider' });
  return async (url: string, { method, headers, body, signal }: Options): Promise<Response> => {
    const target = new URL(url);
    if (target.protocol !== 'https:') throw new TypeError(`${target.host} must be requested over https`);
    const response = await client.request(target, {
      method,
      headers,
      body: typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : undefined,
      signal: signal ?? AbortSignal.timeout(timeout),
      maxBytes,
    });
    return new Response(response.body.length === 0 ? null : Uint8Array.from(response.body), {
      status: response.status,
      headers: Object.entries(response.headers).flatMap(([name, values = []]) =>
        [values].flat().map((value): [string, string] => [name, value]),
      ),
    });
  };
}
