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
