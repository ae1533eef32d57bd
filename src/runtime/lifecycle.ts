/** Starts the components of the server in dependency order and stops them in reverse order. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';

/** Phases of a shutdown, in milliseconds. */
export interface StopTimes {
  /** Time during which the server reports that it is not ready but still accepts requests. */
  readonly announce: number;
  /** Maximum time after `announce` for requests in flight to end. */
  readonly grace: number;
}

/** A component that `Lifecycle` starts and stops. The constructor of a component stores options and does no work. */
export interface Component {
  /** Resolves once components that depend on this one can use it. */
  start?(signal: AbortSignal): Promise<void> | void;
  /** Returns the reason why this component makes the server unready; '' if there is none. */
  problem?(): string;
  /** Returns a problem that does not make the server unready; '' if there is none. */
  warning?(): string;
  /** Prepares for the stop of the server. The server still accepts requests in the meantime. */
  drain?(): void;
  /** Stops the component. Called only after `start`, even if `start` failed. */
  stop?(times: StopTimes): Promise<void> | void;
}

interface NamedComponent {
  readonly name: string;
  readonly component: Component;
}

export interface HealthCheck {
  readonly name: string;
  /** Returns '' if the component is ready. */
  readonly problem: () => string;
  /** Returns '' if there is no warning. */
  readonly warning: () => string;
}

export class Lifecycle {
  readonly #log: Logger;
  readonly #components: NamedComponent[] = [];
  /** Components whose `start` was called, the last one first. */
  readonly #started: NamedComponent[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Adds a component. Components can use only components that were added earlier. The health check of the component has
   * the same name.
   */
  add<C extends Component>(name: string, component: C): C {
    this.#components.push({ name, component });
    return component;
  }

  /** Health checks of the components that can report a problem or a warning, in the order in which they were added. */
  get checks(): readonly HealthCheck[] {
    return this.#components
      .filter(({ component }) => component.problem !== undefined || component.warning !== undefined)
      .map(({ name, component }) => ({
        name,
        problem: () => component.problem?.() ?? '',
        warning: () => component.warning?.() ?? '',
      }));
  }

  /**
   * Starts one component after the other. If a component fails or the signal is aborted, stops the started components
   * and throws.
   */
  async start(signal: AbortSignal): Promise<void> {
    try {
      for (const named of this.#components) {
        signal.throwIfAborted();
        this.#started.unshift(named);
        await named.component.start?.(signal);
      }
    } catch (error) {
      await this.#stopStarted({ announce: 0, grace: 0 });
      throw error;
    }
  }

  /**
   * Drains every component, waits for `announce`, and stops one component after the other, even if some components
   * fail.
   */
  async stop(times: StopTimes): Promise<void> {
    for (const named of this.#started) await this.#attempt('drain', named, () => named.component.drain?.());
    if (times.announce > 0) await sleep(times.announce);
    await this.#stopStarted(times);
  }

  async #stopStarted(times: StopTimes): Promise<void> {
    for (const named of this.#started.splice(0))
      await this.#attempt('stop', named, () => named.component.stop?.(times));
  }

  async #attempt(call: 'drain' | 'stop', { name }: NamedComponent, action: () => Promise<void> | void): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#log.error(`component failed to ${call}`, { component: name, error });
    }
  }
}

/**
 * Event that a component publishes. Components that are built later subscribe to it, so no component refers to a later
 * component.
 */
export class Topic<T = void> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Calls `listener` for each later event, until the returned function is called. */
  subscribe(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
