/** That something is complete for the first time, for those who wait for it. */
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

  /** Resolves when it is so; throws the signal's reason when that is aborted before. */
  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#done) return resolve();
      const refuse = (): void => {
        this.#waiting.delete(accept);
        reject(signal?.reason as Error);
      };
      const accept = (): void => {
        signal?.removeEventListener('abort', refuse);
        resolve();
      };
      if (signal?.aborted) return refuse();
      signal?.addEventListener('abort', refuse);
      this.#waiting.add(accept);
    });
  }
}
