/** Log store that the configuration selects. A change of the store's section replaces the store without a restart. */
import { serviceUnavailable, timeout } from '../runtime/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Caller, StoreFor } from './stores/log-store.ts';
import type { LoggingSettings } from '../config/log-stores.ts';

export interface LogsOptions {
  readonly config: { subscribe(listener: (value: { readonly logging: LoggingSettings }) => void): void };
  readonly open: (settings: LoggingSettings) => StoreFor;
  /** Client with the identity of this server, used to check the store. */
  readonly client: Caller;
  readonly log: Logger;
  /** Timeout of a check of the store in milliseconds; 5 s by default. */
  readonly timeout?: number;
}

/** A store in use, which stays open until `release` is called. */
export interface StoreUse {
  readonly storeFor: StoreFor;
  /** Signal that is aborted when the configuration selects another store. */
  readonly replaced: AbortSignal;
  readonly release: () => void;
}

const checkInterval = 30_000;
/** Milliseconds between checks while the store is unavailable. */
const retryInterval = 5_000;
const checkTimeout = 5_000;

interface OpenStore {
  readonly settings: string;
  readonly storeFor: StoreFor;
  readonly replaced: AbortController;
  uses: number;
}

export class ConfiguredLogStore {
  readonly #options: LogsOptions;
  #opened: OpenStore | undefined;
  #warning = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LogsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.config.subscribe(({ logging }) => this.#replace(logging));
    this.#checkLater();
  }

  #checkLater(): void {
    const interval = this.#warning === '' ? checkInterval : retryInterval;
    this.#timer = setTimeout(() => void this.#checkAgain(), interval).unref();
  }

  async #checkAgain(): Promise<void> {
    await this.#check();
    if (this.#opened !== undefined) this.#checkLater();
  }

  /**
   * Returns why the store is unavailable; '' if no problem is known. The server stays ready while the store is
   * unavailable.
   */
  warning(): string {
    return this.#warning;
  }

  use(): StoreUse {
    const opened = this.#opened;
    if (opened === undefined) throw serviceUnavailable('no log store is open');
    opened.uses += 1;
    let isHeld = true;
    return {
      storeFor: opened.storeFor,
      replaced: opened.replaced.signal,
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        opened.uses -= 1;
        this.#closeUnused(opened);
      },
    };
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.replaced.abort(serviceUnavailable('the server is stopping'));
    await opened?.storeFor(this.#options.client, '').close();
  }

  #replace(logging: LoggingSettings): void {
    const settings = JSON.stringify(logging);
    const previous = this.#opened;
    if (previous?.settings === settings) return;
    const storeFor = this.#options.open(logging);
    this.#opened = { settings, storeFor, replaced: new AbortController(), uses: 0 };
    if (previous !== undefined) {
      this.#options.log.info('log store configuration changed', { store: logging.store });
      previous.replaced.abort(serviceUnavailable('the log store configuration changed; send the request again', 1));
      this.#closeUnused(previous);
    }
    void this.#check();
  }

  #closeUnused(opened: OpenStore): void {
    const { client, log } = this.#options;
    if (opened === this.#opened || opened.uses > 0) return;
    opened
      .storeFor(client, '')
      .close()
      .catch((error: unknown) => log.warn('could not close log store', { error }));
  }

  async #check(): Promise<void> {
    const opened = this.#opened;
    if (opened === undefined) return;
    const { client, log, timeout: limit = checkTimeout } = this.#options;
    const store = opened.storeFor(client, '');
    const timedOut = new AbortController();
    const timer = setTimeout(
      () => timedOut.abort(timeout(`the log store "${store.name}" did not respond in time`)),
      limit,
    ).unref();
    let warning = '';
    try {
      await store.check(timedOut.signal);
    } catch (error) {
      warning = error instanceof Error ? error.message : String(error);
    }
    clearTimeout(timer);
    if (opened !== this.#opened || warning === this.#warning) return;
    this.#warning = warning;
    if (warning === '') log.info('log store available again');
    else log.warn('log store unavailable', { reason: warning });
  }
}
