import type { ChangeType } from '../client/kube-object.ts';
import type { StoredObject } from './stored-object.ts';

export interface Change<F> {
  readonly type: ChangeType;
  readonly resourceVersion: number;
  /** The state after the change; of a deletion the last state, under the deletion's resourceVersion. */
  readonly object: StoredObject<F>;
  /** The state before; undefined for an addition. */
  readonly previous: StoredObject<F> | undefined;
}

/** What was found out about the time before a history. */
export interface Recalled {
  /** There are changes after anything older that are not remembered. */
  readonly floor: number;
  /** All changes after this are remembered. */
  readonly since: number;
}

export const maxChanges = 10_000;
const maxBytes = 64 * 1024 * 1024;

/** The last changes of a store, so that a watch can begin in the past. */
export class History<F> {
  /** Oldest first; those before `#first` are forgotten. */
  #changes: Change<F>[] = [];
  #first = 0;
  /** The position of the first of `#changes`. */
  #start = 0;
  #bytes = 0;
  /** Every change after this resourceVersion is remembered. */
  #since = 0;
  /** After anything older there are changes that are not remembered; from here to `#since` nobody knows of any. */
  #floor = 1;

  get since(): number {
    return this.#since;
  }

  /** Whether all changes after a resourceVersion may be remembered without anybody knowing. */
  isInDoubt(resourceVersion: number): boolean {
    return resourceVersion >= this.#floor && resourceVersion < this.#since;
  }

  /** What was found out while `oldestPosition` was this: it is worth nothing if changes were forgotten since. */
  recall(oldestPosition: number, { floor, since }: Recalled): void {
    if (oldestPosition !== this.oldestPosition) return;
    this.#floor = Math.max(this.#floor, floor);
    this.#since = since;
  }

  /** Where the next change will stand among all that there were since the start: a place to read on from. */
  get position(): number {
    return this.#start + this.#changes.length;
  }

  /** Of the oldest change that is remembered. */
  get oldestPosition(): number {
    return this.#start + this.#first;
  }

  /** Of the first change after a resourceVersion; undefined if not all changes after it are remembered. */
  positionAfter(resourceVersion: number): number | undefined {
    return resourceVersion < this.#since ? undefined : this.#start + this.#indexAfter(resourceVersion);
  }

  /** Undefined if it is forgotten or yet to come. */
  at(position: number): Change<F> | undefined {
    return position < this.oldestPosition ? undefined : this.#changes[position - this.#start];
  }

  /** The remembered changes after a resourceVersion, oldest first; undefined if they are not all remembered. */
  after(resourceVersion: number): readonly Change<F>[] | undefined {
    return resourceVersion < this.#since ? undefined : this.#changes.slice(this.#indexAfter(resourceVersion));
  }

  /** The changes from a position on; undefined if they are not all remembered. */
  from(position: number): readonly Change<F>[] | undefined {
    return position < this.oldestPosition ? undefined : this.#changes.slice(position - this.#start);
  }

  add(change: Change<F>): void {
    this.#changes.push(change);
    this.#bytes += change.object.length;
    while (this.#changes.length - this.#first > maxChanges || this.#bytes > maxBytes) {
      const { object, resourceVersion } = this.#changes[this.#first] as Change<F>;
      this.#bytes -= object.length;
      this.#since = resourceVersion;
      this.#floor = resourceVersion;
      this.#first += 1;
    }
    if (this.#first <= 1000 || this.#first * 2 <= this.#changes.length) return;
    this.#changes = this.#changes.slice(this.#first);
    this.#start += this.#first;
    this.#first = 0;
  }

  /** Forgets everything up to a resourceVersion, which may lie before what was known. */
  reset(resourceVersion: number): void {
    // Not even who had read everything can read on.
    this.#start += this.#changes.length + 1;
    this.#changes = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#since = resourceVersion;
    this.#floor = 1;
  }

  /** Of the first remembered change after a resourceVersion. */
  #indexAfter(resourceVersion: number): number {
    let low = this.#first;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle] as Change<F>).resourceVersion <= resourceVersion) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
