/** The log store of the configuration in force: a change of its section swaps it, without a restart. */
import { serviceUnavailable, timeout } from '../runtime/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Caller, StoreFor } from './stores/log-store.ts';
import type { LoggingSettings } from '../config/log-stores.ts';

export interface LogsOptions {
  readonly config: { subscribe(tell: (value: { readonly logging: LoggingSettings }) => void): void };
  readonly open: (settings: LoggingSettings) => StoreFor;
  /** The server itself, as whom the store is looked at. */
  readonly client: Caller;
  readonly log: Logger;
  /** Milliseconds in which the store must say that it can be asked; 5 s unless stated. */
  readonly patience?: number;
}

/** A store that is in use: it stays open until `release`. */
export interface StoreUse {
  readonly storeFor: StoreFor;
  /** Aborted when it is no longer the one of the configuration. */
  readonly replaced: AbortSignal;
  readonly release: () => void;
}

const checkInterval = 30_000;
/** While it does not answer. */
const againInterval = 5_000;
const checkPatience = 5_000;

interface Held {
  readonly settings: string;
  readonly storeFor: StoreFor;
  readonly replaced: AbortController;
  uses: number;
}

export class Logs {
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
    const interval = this.#warning === '' ? checkInterval : againInterval;
    this.#timer = setTimeout(() => void this.#checkAgain(), interval).unref();
  }

  async #checkAgain(): Promise<void> {
    await this.#check();
    if (this.#held !== undefined) this.#checkLater();
  }

  /** What is wrong with the store; '' if nothing is known to be. The server can do without. */
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
    held?.replaced.abort(serviceUnavailable('the server is ending'));
    await held?.storeFor(this.#options.client, '').close();
  }

  #take(logging: LoggingSettings): void {
    const settings = JSON.stringify(logging);
    const before = this.#held;
    if (before?.settings === settings) return;
    const storeFor = this.#options.open(logging);
    this.#held = { settings, storeFor, replaced: new AbortController(), uses: 0 };
    if (before !== undefined) {
      this.#options.log.info('the log store is another one', { store: logging.store });
      before.replaced.abort(serviceUnavailable('the log store was changed: ask again', 1));
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
      .catch((error: unknown) => log.warn('a log store did not close', { error }));
  }

  async #check(): Promise<void> {
    const held = this.#held;
    if (held === undefined) return;
    const { client, log, patience = checkPatience } = this.#options;
    const store = held.storeFor(client, '');
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(timeout(`the log store "${store.name}" did not answer in time`)),
      patience,
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
    if (warning === '') log.info('the log store answers again');
    else log.warn('the log store does not answer', { problem: warning });
  }
}
