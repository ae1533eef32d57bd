/** HTTPS requests to the Service of the release, from the node. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { json } from 'node:stream/consumers';
import type { Cluster } from '../cluster.ts';
import { authority, host, namespace, release } from '../release.ts';

export interface ServiceRequest {
  readonly method?: string;
  readonly token?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export interface ServiceClient {
  /** Sends a request and resolves with the head of the response. Throws unless its status is 2xx. */
  open(path: string, options?: ServiceRequest): Promise<IncomingMessage>;
  /** Sends a request and returns the parsed body. */
  json<T>(path: string, options?: ServiceRequest): Promise<T>;
}

export interface ConnectionUse {
  /** Whether requests share a connection. If false, each request opens a connection. */
  readonly keepAlive: boolean;
  /**
   * Milliseconds during which a request is sent again if its connection breaks or cannot be opened. By default, only a
   * GET on a reused connection that the server has closed is sent again, and only once, as browsers and Go's net/http
   * do.
   */
  readonly retry?: number;
}

export async function serviceClient(cluster: Cluster, { keepAlive, retry = 0 }: ConnectionUse): Promise<ServiceClient> {
  const { spec } = await cluster.kube.json<{ spec: { clusterIP: string } }>(
    `/api/v1/namespaces/${namespace}/services/${release}`,
  );
  const agent = new Agent({ keepAlive, maxSockets: keepAlive ? 1 : Infinity, ca: await authority(cluster) });

  async function send(path: string, options: ServiceRequest, isRepeated = false): Promise<IncomingMessage> {
    const { method = 'GET', token, contentType, body, signal } = options;
    const sent = request({
      host: spec.clusterIP,
      servername: host,
      path,
      method,
      agent,
      headers: {
        host,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
      },
      // While clients retry, a short timeout leaves time for another attempt.
      timeout: retry > 0 ? 2_000 : 15_000,
      ...(signal === undefined ? {} : { signal }),
    });
    sent.on('timeout', () => sent.destroy(new Error('timed out')));
    sent.end(body);
    try {
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return response;
    } catch (error) {
      const isStale = sent.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (isStale && method === 'GET' && !isRepeated) return send(path, options, true);
      throw error;
    }
  }

  async function succeed(path: string, options: ServiceRequest): Promise<IncomingMessage> {
    const response = await send(path, options);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    const { message = '', error = '' } = (await json(response)) as { message?: string; error?: string };
    throw new RefusedError(`${options.method ?? 'GET'} ${path.split('?')[0]}: ${statusCode} ${message}${error}`);
  }

  /** Repeats an attempt that gets no response, for at most `retry` milliseconds. */
  async function retried<T>(signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const end = performance.now() + retry;
    for (;;)
      try {
        return await attempt();
      } catch (error) {
        if (error instanceof RefusedError || signal?.aborted === true || performance.now() >= end) throw error;
        await sleep(100);
      }
  }

  return {
    open: (path, options = {}) => retried(options.signal, () => succeed(path, options)),
    json: <T>(path: string, options: ServiceRequest = {}) =>
      retried(options.signal, async () => (await json(await succeed(path, options))) as T),
  };
}

/** A response with a status other than 2xx. */
class RefusedError extends Error {}
