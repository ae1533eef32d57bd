/** The log store that the configuration selects: a change of its section replaces it, without a restart. */
import { serviceUnavailable, timeout } from '../runtime/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Caller, StoreFor } from './stores/log-store.ts';
import type { LoggingSettings } from '../config/log-stores.ts';

export interface LogsOptions {
  readonly config: { subscribe(tell: (value: { readonly logging: LoggingSettings }) => void): void };
  readonly open: (settings: LoggingSettings) => StoreFor;
  /** Checks of the store read as the server itself. */
  readonly client: Caller;
  readonly log: Logger;
  /** Of a check of the store, in milliseconds; 5 s unless stated. */
  readonly timeout?: number;
}

/** A store that is in use: it stays open until `release`. */
export interface StoreUse {
  readonly storeFor: StoreFor;
  /** Aborted when the configuration selects another store. */
  readonly replaced: AbortSignal;
  readonly release: () => void;
}

const checkInterval = 30_000;
/** While it is unavailable. */
const retryInterval = 5_000;
const checkTimeout = 5_000;

interface Held {
  readonly settings: string;
  readonly storeFor: StoreFor;
  readonly replaced: AbortController;
  uses: number;
}

export class ConfiguredLogStore {
  readonly #options: LogsOptions;
  #held: Held | undefined;
  #warning = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LogsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.config.subscribe(({ logging }) => this.#take(logging));
    this.#checkLater();
  }

  #checkLater(): void {
    const interval = this.#warning === '' ? checkInterval : retryInterval;
    this.#timer = setTimeout(() => void this.#checkAgain(), interval).unref();
  }

  async #checkAgain(): Promise<void> {
    await this.#check();
    if (this.#held !== undefined) this.#checkLater();
  }

  /** Returns why the store is unavailable, or '' if it is not known to be. The server stays ready without it. */
  warning(): string {
    return this.#warning;
  }

  use(): StoreUse {
    const held = this.#held;
    if (held === undefined) throw serviceUnavailable('no log store is open');
    held.uses += 1;
    let isTaken = true;
    return {
      storeFor: held.storeFor,
      replaced: held.replaced.signal,
      release: () => {
        if (!isTaken) return;
        isTaken = false;
        held.uses -= 1;
        this.#closeUnused(held);
      },
    };
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const held = this.#held;
    this.#held = undefined;
    held?.replaced.abort(serviceUnavailable('the server is stopping'));
    await held?.storeFor(this.#options.client, '').close();
  }

  #take(logging: LoggingSettings): void {
    const settings = JSON.stringify(logging);
    const before = this.#held;
    if (before?.settings === settings) return;
    const storeFor = this.#options.open(logging);
    this.#held = { settings, storeFor, replaced: new AbortController(), uses: 0 };
    if (before !== undefined) {
      this.#options.log.info('log store configuration changed', { store: logging.store });
      before.replaced.abort(serviceUnavailable('the log store configuration changed; send the request again', 1));
      this.#closeUnused(before);
    }
    void this.#check();
  }

  #closeUnused(held: Held): void {
    const { client, log } = this.#options;
    if (held === this.#held || held.uses > 0) return;
    held
      .storeFor(client, '')
      .close()
      .catch((error: unknown) => log.warn('log store not closed', { error }));
  }

  async #check(): Promise<void> {
    const held = this.#held;
    if (held === undefined) return;
    const { client, log, timeout: limit = checkTimeout } = this.#options;
    const store = held.storeFor(client, '');
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(timeout(`the log store "${store.name}" did not answer in time`)),
      limit,
    ).unref();
    let warning = '';
    try {
      await store.check(late.signal);
    } catch (error) {
      warning = error instanceof Error ? error.message : String(error);
    }
    clearTimeout(timer);
    if (held !== this.#held || warning === this.#warning) return;
    this.#warning = warning;
    if (warning === '') log.info('log store available again');
    else log.warn('log store unavailable', { reason: warning });
  }
}
