/** Starts the components of the server in order of dependency and stops them in reverse. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';

/** Milliseconds. */
export interface StopTimes {
  /** How long the server reports that it is not ready before it stops accepting requests. */
  readonly announce: number;
  /** How long requests in flight may take after that. */
  readonly grace: number;
}

/** A part of the server. Its constructor stores options and does no work. */
export interface Component {
  /** Resolves once components that depend on this one can use it. */
  start?(signal: AbortSignal): Promise<void> | void;
  /** Why the server is not ready; '' if it is. */
  problem?(): string;
  /** What is wrong without making the server unready; '' if nothing is. */
  warning?(): string;
  /** The server is about to stop; it still accepts requests. */
  drain?(): void;
  /** Called only after `start`, also where `start` failed. */
  stop?(times: StopTimes): Promise<void> | void;
}

interface NamedComponent {
  readonly name: string;
  readonly component: Component;
}

export interface HealthCheck {
  readonly name: string;
  /** '' when all is well, else the reason. */
  readonly problem: () => string;
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

  /** Adds a component, which may use only those that were added before. Its health check has the same name. */
  add<C extends Component>(name: string, component: C): C {
    this.#components.push({ name, component });
    return component;
  }

  /** One check for each component that can report a problem or a warning, in the order in which they were added. */
  get checks(): readonly HealthCheck[] {
    return this.#components
      .filter(({ component }) => component.problem !== undefined || component.warning !== undefined)
      .map(({ name, component }) => ({
        name,
        problem: () => component.problem?.() ?? '',
        warning: () => component.warning?.() ?? '',
      }));
  }

  /** Starts one component after the other. If one fails or the signal is aborted, stops those that were started and throws. */
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

  /** Drains every component, waits for `announce`, and stops one after the other. A component that fails does not keep the others. */
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
      this.#log.error(`component did not ${call}`, { component: name, error });
    }
  }
}

/** An event that a component publishes and components built later subscribe to, so that nothing refers to what is not built yet. */
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
