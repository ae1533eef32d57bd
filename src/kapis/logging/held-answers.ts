import { tooManyRequests } from '../../errors.ts';

/** Of all of them, in bytes. */
const most = 128 * 1024 * 1024;
/** What is no larger is not counted: the requests that are under way bound it. */
const small = 256 * 1024;

/** Answers whose readers have not taken them yet: those who read slowly, or never, must not hold all memory. */
export class HeldAnswers {
  #held = 0;

  /** Answers what gives the place back. Throws 429 where there is none. */
  take(bytes: number): () => void {
    if (bytes <= small) return () => undefined;
    if (this.#held + bytes > most)
      throw tooManyRequests('many large answers wait for their readers: take a smaller size, or try again later', 1);
    this.#held += bytes;
    return () => {
      this.#held -= bytes;
    };
  }
}
