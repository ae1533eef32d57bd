/** A record with its place among all others, and the best of many of them within a memory that is bounded. */
import type { LogRecord, TimeOrder } from '../log-store.ts';

export interface PodLogEntry {
  readonly record: LogRecord;
  /** Among the lines of its container that have its time. */
  readonly index: number;
}

/** What V8 holds of a record beside its text, about. */
const overhead = 200;

export const sizeOf = ({ log }: LogRecord): number => overhead + log.length;

export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function ascending({ record: a, index: i }: PodLogEntry, { record: b, index: j }: PodLogEntry): number {
  return (
    compareTexts(a.time, b.time) ||
    compareTexts(a.namespace, b.namespace) ||
    compareTexts(a.pod, b.pod) ||
    compareTexts(a.container, b.container) ||
    i - j
  );
}

/** A total order, and its exact reverse. */
export const compareIn = (order: TimeOrder): ((a: PodLogEntry, b: PodLogEntry) => number) =>
  order === 'asc' ? ascending : (a, b) => ascending(b, a);

/** The first `most` entries in an order, as long as they are no more than so many bytes. */
export class Best {
  readonly #compare: (a: PodLogEntry, b: PodLogEntry) => number;
  readonly #most: number;
  readonly #bytes: number;
  #entries: PodLogEntry[] = [];
  #held = 0;
  /** What comes behind this is none of them. */
  #last: PodLogEntry | undefined;
  #isCut = false;

  constructor(order: TimeOrder, most: number, bytes: number) {
    this.#compare = compareIn(order);
    this.#most = most;
    this.#bytes = bytes;
  }

  /** Some were left out that are among the first `most`. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether one of this time may be among them. */
  mayHold(time: string): boolean {
    if (this.#most === 0) return false;
    if (this.#last === undefined) return true;
    const last = this.#last.record;
    return this.#compare({ record: { ...last, time }, index: this.#last.index }, this.#last) <= 0;
  }

  add(entry: PodLogEntry): void {
    if (this.#most === 0 || (this.#last !== undefined && this.#compare(entry, this.#last) > 0)) return;
    this.#entries.push(entry);
    this.#held += sizeOf(entry.record);
    if (this.#entries.length >= 2 * Math.max(this.#most, 500) || this.#held > 2 * this.#bytes) this.#prune();
  }

  /** In their order. */
  all(): readonly PodLogEntry[] {
    this.#prune();
    return this.#entries;
  }

  #prune(): void {
    const sorted = this.#entries.toSorted(this.#compare);
    let [count, held] = [0, 0];
    for (const { record } of sorted) {
      if (count === this.#most) break;
      // One is held however large it is.
      if (count > 0 && held + sizeOf(record) > this.#bytes) {
        this.#isCut = true;
        break;
      }
      held += sizeOf(record);
      count += 1;
    }
    this.#entries = sorted.slice(0, count);
    this.#held = held;
    if (count < sorted.length) this.#last = this.#entries.at(-1);
  }
}
