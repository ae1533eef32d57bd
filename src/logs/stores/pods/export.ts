/**
 * Everything in its order, of logs that can only be read from a second on: what is too much for the memory is measured first, and then read
 * once more in windows of so many bytes.
 */
import type { LogRecord, TimeOrder } from '../log-store.ts';
import { endOfSecond, secondsOf } from '../../query/times.ts';
import { Best, compareIn, sizeOf, type PodLogEntry } from './entry.ts';
import { scan, type ScanOptions } from './scan.ts';

/** Records of a piece. */
const pieceSize = 1_000;
/** Seconds, or what is taken for one, that are told apart. */
const mostSlots = 10_000;

/** How many bytes there are by time: by seconds at first, by more of them at once when these are too many. */
export class Sizes {
  #slots = new Map<number, number>();
  #length = 1;

  add(second: number, size: number): void {
    const slot = Math.floor(second / this.#length);
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + size);
    if (this.#slots.size > mostSlots) this.#coarsen();
  }

  /** Windows one behind the other, each of at most so many bytes unless it is one slot; from a second to the end of another. */
  windows(most: number): { from: number; to: number }[] {
    const windows: { from: number; to: number }[] = [];
    let held = 0;
    for (const [slot, size] of [...this.#slots].toSorted(([a], [b]) => a - b)) {
      const last = windows.at(-1);
      const to = (slot + 1) * this.#length - 1;
      if (last === undefined || held + size > most) {
        windows.push({ from: slot * this.#length, to });
        held = 0;
      } else last.to = to;
      held += size;
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

/** `held`: bytes of records at a time. */
export async function* exportPieces(
  options: Omit<ScanOptions, 'tailLines' | 'budget'>,
  order: TimeOrder,
  held: number,
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
    if (size > held) all = undefined;
    all?.push(one);
  });
  if (all !== undefined) {
    yield* piecesOf(all.toSorted(compareIn(order)));
    return;
  }
  const windows = sizes.windows(held);
  let exported = 0;
  let isCut = false;
  for (const part of order === 'asc' ? windows : windows.toReversed()) {
    const isLast = part.to >= window.to;
    const within = {
      ...window,
      from: Math.max(part.from, window.from),
      ...(isLast ? {} : { to: part.to, last: endOfSecond(part.to) }),
    };
    // What one second has may be more than all that is held at a time.
    const best = new Best(order, Infinity, 2 * held);
    await scan({ ...options, window: within }, (_, time, entry) => {
      if (best.mayHold(time)) best.add(entry());
    });
    const entries = best.all();
    exported += entries.length;
    isCut ||= best.isCut;
    if (best.isCut) reasons.add(`of what was written around second ${part.from} only ${2 * held} bytes were read`);
    yield* piecesOf(entries);
  }
  if (exported < count && !isCut) reasons.add(`${count - exported} records went away while they were exported`);
}
