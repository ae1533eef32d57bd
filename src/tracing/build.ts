/** Starts, replaces and stops the tracer when the configuration of tracing changes. */
import type { ClusterParts } from '../cluster/build.ts';
import { tracesPath, type TracingSettings } from '../config/tracing.ts';
import { traceSpansDropped } from '../runtime/metrics/definitions.ts';
import { readVersion } from '../runtime/package.ts';
import { tracing } from '../runtime/tracing.ts';
import type { OpenTracer, TracerOptions } from './opentelemetry.ts';

type Parts = Pick<ClusterParts, 'live' | 'secrets' | 'clock' | 'log'>;

/** Milliseconds to wait for the response of the receiver. */
const exportTimeout = 10_000;
/** Milliseconds between two log lines about a receiver that does not accept spans. */
const logInterval = 60_000;

export const buildTracing = (parts: ClusterParts): void => void parts.lifecycle.add('tracing', new Tracing(parts));

class Tracing {
  readonly #parts: Parts;
  #settings = '';
  #opened: OpenTracer | undefined;
  /** Changes of the configuration, which are applied one after the other. */
  #replacing = Promise.resolve();
  /** Resolves when the tracer that was replaced last is closed. */
  #closing = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    this.#parts.live.subscribe(({ tracing: settings }) => {
      this.#replacing = this.#replacing
        .then(() => this.#replace(settings))
        .catch((error: unknown) => void this.#parts.log.error('failed to start tracing', { error }));
    });
    await this.#replacing;
  }

  async stop(): Promise<void> {
    await this.#replacing;
    tracing.tracer = undefined;
    await Promise.all([this.#closing, this.#opened?.close()]);
  }

  async #replace(settings: TracingSettings): Promise<void> {
    const text = JSON.stringify(settings);
    if (text === this.#settings) return;
    this.#settings = text;
    const previous = this.#opened;
    this.#opened = settings.endpoint === '' ? undefined : await this.#open(settings);
    tracing.tracer = this.#opened;
    if (previous === undefined) return;
    this.#closing = previous.close();
    if (this.#opened === undefined) this.#parts.log.info('tracing stopped');
  }

  async #open({ endpoint, caCertificate: ca, tokenRef, ...sampling }: TracingSettings): Promise<OpenTracer> {
    const { openTracer } = await import('./opentelemetry.ts');
    const { secrets, log } = this.#parts;
    const tracer = openTracer({
      ...sampling,
      url: `${endpoint.replace(/\/+$/, '')}${tracesPath}`,
      exportTimeout,
      ca,
      token: () => tokenRef && secrets.read(tokenRef),
      version: readVersion(),
      lost: this.#lossReporter(endpoint),
    });
    log.info('tracing started', { endpoint, ...sampling });
    return tracer;
  }

  /**
   * Returns the function that counts lost spans. The function logs a failing receiver at once, and then once per
   * `logInterval`.
   */
  #lossReporter(endpoint: string): TracerOptions['lost'] {
    const { clock, log } = this.#parts;
    let loggedAt = -Infinity;
    let unlogged = 0;
    return (spans, reason) => {
      traceSpansDropped.add({}, spans);
      unlogged += spans;
      const now = clock.monotonic();
      if (reason === undefined || now - loggedAt < logInterval) return;
      log.warn('trace export failed', { endpoint, spans: unlogged, problem: reason.message });
      loggedAt = now;
      unlogged = 0;
    };
  }
}
