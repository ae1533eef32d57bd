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

/** In the order in which they are opened. */
const names = ['http', 'https', 'aggregated'] as const;

export type Ports = Readonly<Record<(typeof names)[number], number>>;

export interface ListenerFigures {
  readonly listener: keyof Ports;
  readonly connections: number;
  /** Bytes sent since the start, those of TLS included. */
  readonly sentBytes: number;
}

/** The three ports of the server. */
export class Listeners {
  readonly #options: ListenersOptions;
  readonly #open: Listener[] = [];

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { flags, gateway, aggregated, certificate } = this.#options;
    const { bindAddress: host, aggregatedBindAddress, httpPort, httpsPort, aggregatedPort } = flags;
    certificate.replaced.subscribe((next) => {
      for (const listener of this.#open) listener.setCertificate(next);
    });
    this.#open.push(await listenHTTP(gateway, { host, port: httpPort }));
    this.#open.push(await listenTLS(gateway, { host, port: httpsPort }, certificate.value, false));
    const aggregator = { host: aggregatedBindAddress, port: aggregatedPort };
    this.#open.push(await listenTLS(aggregated, aggregator, certificate.value, true));
  }

  /** Figures of the open listeners. */
  get figures(): readonly ListenerFigures[] {
    return this.#open.map(({ sockets }, at) => ({
      listener: names[at] as keyof Ports,
      connections: sockets.open.size,
      sentBytes: sockets.sentBytes,
    }));
  }

  /** The bound ports; 0 before `start`. */
  get ports(): Ports {
    const [http = 0, https = 0, aggregated = 0] = this.#open.map(({ port }) => port);
    return { http, https, aggregated };
  }

  /** Closes the listeners. Watches end spread over half of the grace period, so that their clients do not reconnect at the same time. */
  async stop({ announce, grace }: StopTimes): Promise<void> {
    this.#options.openStreams.endAll(announce === 0 ? 0 : grace / 2);
    await Promise.all(this.#open.map((listener) => listener.close(grace)));
  }
}
