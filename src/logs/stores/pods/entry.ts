/** Defines a total order of records, and keeps the first records of this order in limited memory. */
import type { LogRecord, TimeOrder } from '../log-store.ts';

export interface PodLogEntry {
  readonly record: LogRecord;
  /** Index among the lines of its container with the same time. */
  readonly index: number;
}

/** Approximate bytes of a record in V8 in addition to its text. */
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

/** Returns a comparison by a total order, or by its exact reverse. */
export const compareIn = (order: TimeOrder): ((a: PodLogEntry, b: PodLogEntry) => number) =>
  order === 'asc' ? ascending : (a, b) => ascending(b, a);

/** Keeps the first `max` entries in an order, up to a number of bytes. */
export class FirstEntries {
  readonly #compare: (a: PodLogEntry, b: PodLogEntry) => number;
  readonly #max: number;
  readonly #maxBytes: number;
  #entries: PodLogEntry[] = [];
  #bytes = 0;
  /** Last entry that was kept when entries were dropped. Entries that sort after this entry are not needed. */
  #last: PodLogEntry | undefined;
  #isCut = false;

  constructor(order: TimeOrder, max: number, maxBytes: number) {
    this.#compare = compareIn(order);
    this.#max = max;
    this.#maxBytes = maxBytes;
  }

  /** True if some of the first `max` entries were dropped. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Returns whether an entry of this time may be among the first `max` entries. */
  mayInclude(time: string): boolean {
    if (this.#max === 0) return false;
    if (this.#last === undefined) return true;
    const last = this.#last.record;
    return this.#compare({ record: { ...last, time }, index: this.#last.index }, this.#last) <= 0;
  }

  add(entry: PodLogEntry): void {
    if (this.#max === 0 || (this.#last !== undefined && this.#compare(entry, this.#last) > 0)) return;
    this.#entries.push(entry);
    this.#bytes += sizeOf(entry.record);
    if (this.#entries.length >= 2 * Math.max(this.#max, 500) || this.#bytes > 2 * this.#maxBytes) this.#prune();
  }

  /** Returns the entries in order. */
  all(): readonly PodLogEntry[] {
    this.#prune();
    return this.#entries;
  }

  #prune(): void {
    const sorted = this.#entries.toSorted(this.#compare);
    let [count, bytes] = [0, 0];
    for (const { record } of sorted) {
      if (count === this.#max) break;
      // Always keeps at least one entry.
      if (count > 0 && bytes + sizeOf(record) > this.#maxBytes) {
        this.#isCut = true;
        break;
      }
      bytes += sizeOf(record);
      count += 1;
    }
    this.#entries = sorted.slice(0, count);
    this.#bytes = bytes;
    if (count < sorted.length) this.#last = this.#entries.at(-1);
  }
}
