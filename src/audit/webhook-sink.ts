/**
 * Sends events to an HTTP receiver as EventLists of audit.k8s.io/v1 (k8s.io/apiserver plugin/pkg/audit/webhook and
 * buffered).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../runtime/logger.ts';
import { OutgoingClient, OutgoingError } from '../runtime/outgoing.ts';
import { withoutSpan } from '../runtime/tracing.ts';
import type { Sink } from './sink.ts';

export interface WebhookSinkOptions {
  readonly url: string;
  /** PEM of the only CA that is trusted for the receiver. */
  readonly caCertificate?: string | undefined;
  /** Returns the bearer token for each request; undefined for none. */
  readonly token: () => string | undefined;
  readonly batchMaxSize: number;
  /** Maximum milliseconds that an event waits for its batch. */
  readonly batchMaxWait: number;
  /** Maximum number of waiting events. */
  readonly bufferSize: number;
  readonly log: Logger;
  /** Receives the number of dropped events. */
  readonly dropped: (events: number) => void;
  /** Milliseconds before the second attempt. The pause doubles after each attempt. */
  readonly firstPause?: number;
}

/** Maximum characters of all waiting events, regardless of their number. */
const maxWaiting = 64 * 1024 * 1024;
const maxAttempts = 5;
/** Timeout of a request in milliseconds. */
const requestTimeout = 10_000;
/** Maximum bytes of a response. Only its status is used. */
const maxResponse = 1024 * 1024;

export class WebhookSink implements Sink {
  readonly #options: WebhookSinkOptions;
  readonly #client: OutgoingClient;
  readonly #closing = new AbortController();
  #waiting: string[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: WebhookSinkOptions) {
    this.#options = options;
    this.#client = new OutgoingClient({ ca: options.caCertificate, connections: 1 });
  }

  write(event: string): void {
    const { bufferSize, batchMaxSize, batchMaxWait, dropped } = this.#options;
    if (this.#waiting.length >= bufferSize || this.#bytes + event.length > maxWaiting) return dropped(1);
    this.#waiting.push(event);
    this.#bytes += event.length;
    if (this.#waiting.length >= batchMaxSize) this.#send();
    // The events that arrive while a batch is sent are sent after the batch.
    else if (this.#sending === undefined) this.#timer ??= setTimeout(() => this.#send(), batchMaxWait);
  }

  /**
   * Tries once more to send the waiting events. Drops all remaining events after the first failure, because a receiver
   * that does not respond must not delay the shutdown.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#send();
    await this.#sending;
    await this.#client.close();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= withoutSpan(() => this.#sendAll());
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#options.batchMaxSize);
      this.#bytes -= batch.reduce((sum, { length }) => sum + length, 0);
      const isDelivered = await this.#deliver(batch);
      if (!isDelivered && this.#closing.signal.aborted) this.#dropAll();
    }
    this.#sending = undefined;
  }

  #dropAll(): void {
    if (this.#waiting.length > 0) this.#options.dropped(this.#waiting.length);
    this.#waiting = [];
    this.#bytes = 0;
  }

  async #deliver(batch: readonly string[]): Promise<boolean> {
    const { url, log, dropped, firstPause = 500 } = this.#options;
    const body = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${batch.join(',')}]}`;
    for (let attempt = 1, pause = firstPause; ; attempt += 1, pause *= 2) {
      const isClosing = this.#closing.signal.aborted;
      const problem = await this.#post(body);
      if (problem === undefined) return true;
      if (attempt === maxAttempts || !problem.isRetryable || isClosing) {
        dropped(batch.length);
        log.error('audit webhook delivery failed', { url, events: batch.length, problem: problem.message });
        return false;
      }
      await sleep(pause, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /** Posts a batch. Returns undefined if the receiver accepted the batch. */
  async #post(body: string): Promise<{ readonly message: string; readonly isRetryable: boolean } | undefined> {
    try {
      const status = await this.#request(body);
      if (status >= 200 && status < 300) return undefined;
      return { message: `status ${status}`, isRetryable: status >= 500 || status === 429 };
    } catch (error) {
      return { message: (error as Error).message, isRetryable: true };
    }
  }

  async #request(body: string): Promise<number> {
    const token = this.#options.token();
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'platform-apiserver',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    };
    const signal = AbortSignal.timeout(requestTimeout);
    const url = new URL(this.#options.url);
    const request = { method: 'POST', headers, body, signal, maxBytes: maxResponse };
    const { status } = await this.#client.request(url, request).catch((error: unknown) => {
      if (error instanceof OutgoingError && error.status !== undefined) return { status: error.status };
      throw error;
    });
    return status;
  }
}
