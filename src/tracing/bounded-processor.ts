/** Sends the spans of the OpenTelemetry SDK to the receiver, with limits on memory and time. */
import { Agent as HTTPAgent } from 'node:http';
import { Agent as HTTPSAgent } from 'node:https';
import { ExportResultCode, type ExportResult } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';

export interface ReceiverOptions {
  /** URL to which spans are posted. */
  readonly url: string;
  /** The only trusted CA of the receiver, in PEM. Default: the CAs of Node.js. */
  readonly ca: string | undefined;
  /** Returns the bearer token; undefined for none. */
  readonly token: () => string | undefined;
  /** Milliseconds to wait for the complete response of the receiver. */
  readonly exportTimeout: number;
  /** Called with the number of lost spans, and with the reason if the receiver did not accept them. */
  readonly lost: (spans: number, reason?: Error) => void;
}

/** Maximum spans that wait for export; further spans are dropped. */
const maxWaiting = 2_048;
const maxBatch = 512;
/** Milliseconds between two exports of a batch. */
const batchDelay = 1_000;

/** Batches the spans of the SDK. Limits the spans that wait for the receiver, and counts those that are lost. */
export class BoundedProcessor implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #lost: ReceiverOptions['lost'];
  readonly #exportTimeout: number;
  readonly #agent: HTTPAgent;
  #waiting = 0;
  /** True after the settings have changed, while requests that started before are still served. */
  #isClosed = false;

  constructor({ url, ca, token, exportTimeout, lost }: ReceiverOptions) {
    this.#lost = lost;
    this.#exportTimeout = exportTimeout;
    this.#agent = url.startsWith('https:')
      ? new HTTPSAgent({ keepAlive: true, ca })
      : new HTTPAgent({ keepAlive: true });
    const exporter = new OTLPTraceExporter({
      url,
      timeoutMillis: exportTimeout,
      userAgent: 'platform-apiserver',
      httpAgentOptions: () => this.#agent,
      headers: async (): Promise<Record<string, string>> => {
        const value = token();
        return value === undefined ? {} : { Authorization: `Bearer ${value}` };
      },
    });
    this.#batches = new BatchSpanProcessor({
      exporter: this.#counted(exporter),
      maxQueueSize: maxWaiting,
      maxExportBatchSize: maxBatch,
      scheduledDelayMillis: batchDelay,
      exportTimeoutMillis: exportTimeout,
    });
  }

  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        let isOver = false;
        const end = (result: ExportResult): void => {
          if (isOver) return;
          isOver = true;
          clearTimeout(timer);
          this.#waiting -= spans.length;
          if (result.code !== ExportResultCode.SUCCESS) this.#lost(spans.length, result.error);
          done(result);
        };
        // The timeout of the exporter starts again with each byte that it receives.
        const timer = setTimeout(() => {
          end({ code: ExportResultCode.FAILED, error: new Error('the response of the receiver took too long') });
          this.#agent.destroy();
        }, this.#exportTimeout).unref();
        exporter.export(spans, end);
      },
      shutdown: () => exporter.shutdown(),
    };
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    // The SDK drops the spans of a closed processor silently.
    if (this.#isClosed || this.#waiting >= maxWaiting) return this.#lost(1);
    this.#waiting += 1;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    this.#isClosed = true;
    return this.#batches.shutdown();
  }
}
