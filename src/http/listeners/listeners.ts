import type { Flags } from '../../config/flags.ts';
import type { StopTimes } from '../../runtime/lifecycle.ts';
import type { ServingCertificate } from '../../tls/serving-certificate.ts';
import type { OpenStreams } from '../open-streams.ts';
import type { HttpHandler } from './http-handler.ts';
import { listenHTTP, listenTLS, type Listener } from './listen.ts';

type Addresses = Pick<Flags, 'bindAddress' | 'httpPort' | 'httpsPort' | 'aggregatedBindAddress' | 'aggregatedPort'>;

export interface ListenersOptions {
  readonly flags: Addresses;
  /** Serves clients. */
  readonly gateway: HttpHandler;
  /** Serves kube-apiserver's aggregator. */
  readonly aggregated: HttpHandler;
  readonly certificate: Pick<ServingCertificate, 'value' | 'replaced'>;
  readonly openStreams: Pick<OpenStreams, 'endAll'>;
}

type Name = 'http' | 'https' | 'aggregated';

/** The bound ports. The port of a listener that is off or not started is 0. */
export type Ports = Readonly<Record<Name, number>>;

export interface ListenerFigures {
  readonly listener: Name;
  readonly connections: number;
  /** Bytes sent since the start, including TLS overhead. */
  readonly sentBytes: number;
}

/**
 * Milliseconds for which connections without a request stay open after their listener has closed. The first request of
 * a connection that was just opened may still be in flight. Go's Server.Shutdown waits for it, too.
 */
const idleTime = 1_000;

/** The listeners of the server and their ports. */
export class Listeners {
  readonly #options: ListenersOptions;
  readonly #open = new Map<Name, Listener>();

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { flags, gateway, aggregated, certificate } = this.#options;
    const { bindAddress: host, aggregatedBindAddress, httpPort, httpsPort, aggregatedPort } = flags;
    certificate.replaced.subscribe((next) => {
      for (const listener of this.#open.values()) listener.setCertificate(next);
    });
    if (httpPort !== undefined) this.#open.set('http', await listenHTTP(gateway, { host, port: httpPort }));
    this.#open.set('https', await listenTLS(gateway, { host, port: httpsPort }, certificate.value, false));
    const aggregator = { host: aggregatedBindAddress, port: aggregatedPort };
    this.#open.set('aggregated', await listenTLS(aggregated, aggregator, certificate.value, true));
  }

  /** Figures of the open listeners. */
  get figures(): readonly ListenerFigures[] {
    return [...this.#open].map(([listener, { sockets }]) => ({
      listener,
      connections: sockets.open.size,
      sentBytes: sockets.sentBytes,
    }));
  }

  get ports(): Ports {
    const portOf = (name: Name): number => this.#open.get(name)?.port ?? 0;
    return { http: portOf('http'), https: portOf('https'), aggregated: portOf('aggregated') };
  }

  /** Makes HTTP/1.1 clients close their connections. HTTP/2 connections end when the listeners close. */
  drain(): void {
    for (const listener of this.#open.values()) listener.drain();
  }

  /**
   * Closes the listeners. Ends the watches at times that are spread over half of the grace period, so that clients do
   * not all reconnect at the same time.
   */
  async stop({ announce, grace }: StopTimes): Promise<void> {
    this.#options.openStreams.endAll(announce === 0 ? 0 : grace / 2);
    const idle = announce === 0 ? 0 : idleTime;
    await Promise.all([...this.#open.values()].map((listener) => listener.close({ grace, idle })));
  }
}
