/**
 * Exports all records in order. The core API can return the lines of a log from a given second on, but not up to a
 * given second. If the records exceed the memory limit, the first scan measures their size, and windows of a limited
 * size are then read one by one.
 */
import type { LogRecord, TimeOrder } from '../log-store.ts';
import { endOfSecond, secondsOf } from '../../query/times.ts';
import { compareIn, FirstEntries, sizeOf, type PodLogEntry } from './entry.ts';
import { scan, type ScanOptions } from './scan.ts';

/** Number of records per piece. */
const pieceSize = 1_000;
/** Maximum number of time slots, which are one second or longer. */
const maxSlots = 10_000;

/**
 * Bytes of records by time slot. A slot initially lasts one second; the length is doubled when there are too many
 * slots.
 */
export class Sizes {
  #slots = new Map<number, number>();
  #length = 1;

  add(second: number, size: number): void {
    const slot = Math.floor(second / this.#length);
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + size);
    if (this.#slots.size > maxSlots) this.#coarsen();
  }

  /**
   * Returns consecutive windows of at most `maxBytes`, or of a single slot; `from` and `to` are seconds, both
   * inclusive.
   */
  windows(maxBytes: number): { from: number; to: number }[] {
    const windows: { from: number; to: number }[] = [];
    let windowBytes = 0;
    for (const [slot, size] of [...this.#slots].toSorted(([a], [b]) => a - b)) {
      const last = windows.at(-1);
      const to = (slot + 1) * this.#length - 1;
      if (last === undefined || windowBytes + size > maxBytes) {
        windows.push({ from: slot * this.#length, to });
        windowBytes = 0;
      } else last.to = to;
      windowBytes += size;
    }
    return windows;
  }

  #coarsen(): void {
    const before = this.#slots;
    this.#slots = new Map();
    this.#length *= 2;
    for (const [slot, size] of before) {
      const half = Math.floor(slot / 2);
      this.#slots.set(half, (this.#slots.get(half) ?? 0) + size);
    }
  }
}

function* piecesOf(entries: readonly PodLogEntry[]): Generator<readonly LogRecord[]> {
  for (let start = 0; start < entries.length; start += pieceSize)
    yield entries.slice(start, start + pieceSize).map(({ record }) => record);
}

/** Yields the records in pieces. `maxBytes`: limit on records in memory. */
export async function* exportPieces(
  options: Omit<ScanOptions, 'tailLines' | 'budget'>,
  order: TimeOrder,
  maxBytes: number,
): AsyncGenerator<readonly LogRecord[], void> {
  const { window, reasons } = options;
  const sizes = new Sizes();
  let all: PodLogEntry[] | undefined = [];
  let [count, size] = [0, 0];
  await scan(options, (_, time, entry) => {
    const one = entry();
    const bytes = sizeOf(one.record);
    sizes.add(secondsOf(time), bytes);
    count += 1;
    size += bytes;
    if (size > maxBytes) all = undefined;
    all?.push(one);
  });
  if (all !== undefined) {
    yield* piecesOf(all.toSorted(compareIn(order)));
    return;
  }
  const windows = sizes.windows(maxBytes);
  let exported = 0;
  let isCut = false;
  for (const part of order === 'asc' ? windows : windows.toReversed()) {
    const isLast = part.to >= window.to;
    const within = {
      ...window,
      from: Math.max(part.from, window.from),
      ...(isLast ? {} : { to: part.to, last: endOfSecond(part.to) }),
    };
    // The records of a single second may exceed the limit.
    const entriesOfPart = new FirstEntries(order, Infinity, 2 * maxBytes);
    await scan({ ...options, window: within }, (_, time, entry) => {
      if (entriesOfPart.mayInclude(time)) entriesOfPart.add(entry());
    });
    const entries = entriesOfPart.all();
    exported += entries.length;
    isCut ||= entriesOfPart.isCut;
    if (entriesOfPart.isCut)
      reasons.add(`only ${2 * maxBytes} bytes of the records around second ${part.from} were read`);
    yield* piecesOf(entries);
  }
  if (exported < count && !isCut)
    reasons.add(`${count - exported} records were removed by log rotation during the export`);
}
