/** Latch for the first complete list: `wait` resolves once `set` was called. */
export class Synced {
  #done = false;
  readonly #waiting = new Set<() => void>();

  get done(): boolean {
    return this.#done;
  }

  set(): void {
    this.#done = true;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** Resolves once the latch is set. Throws the signal's reason if the signal is aborted first. */
  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#done) return resolve();
      const onAbort = (): void => {
        this.#waiting.delete(onSet);
        reject(signal?.reason as Error);
      };
      const onSet = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener('abort', onAbort);
      this.#waiting.add(onSet);
    });
  }
}
