import type { ChangeType } from '../client/kube-object.ts';
import type { StoredObject } from './stored-object.ts';

export interface Change<F> {
  readonly type: ChangeType;
  readonly resourceVersion: number;
  /**
   * The object after the change. For a deletion: the last version of the object, with the resourceVersion of the
   * deletion.
   */
  readonly object: StoredObject<F>;
  /** The object before the change; undefined for an addition. */
  readonly previous: StoredObject<F> | undefined;
}

/** Start of a history at the time of a request to kube-apiserver about earlier changes. */
export type HistoryStart = Pick<History<unknown>, 'oldestPosition' | 'since'>;

/** Information from kube-apiserver about changes before a list. */
export interface Recalled {
  /** For a reader that continues from any resourceVersion older than this one, the history is incomplete. */
  readonly floor: number;
  /** The history contains all changes after this resourceVersion. */
  readonly since: number;
}

export const maxChanges = 10_000;
const maxBytes = 64 * 1024 * 1024;

const sizeOf = ({ object }: Change<unknown>): number => object.length + object.managedFieldsSize;

/** Last changes of a store, so that a watch can start at an earlier resourceVersion. */
export class History<F> {
  /** Changes, oldest first; those before `#first` are removed and undefined. */
  #changes: (Change<F> | undefined)[] = [];
  #first = 0;
  /** Position of the first of `#changes`. */
  #start = 0;
  #bytes = 0;
  /** For a reader that continues from this resourceVersion or a newer one, the history contains every change. */
  #since = 0;
  /** Position after the last list. Earlier changes are only the differences between two lists. */
  #listed = 0;
  /**
   * For a reader that continues from any resourceVersion older than this one, the history is incomplete. For versions
   * between this one and `#since`, it is unknown whether changes are missing.
   */
  #floor = 1;

  get since(): number {
    return this.#since;
  }

  /** Returns true if it is unknown whether the history contains all changes after a resourceVersion. */
  isInDoubt(resourceVersion: number): boolean {
    return resourceVersion >= this.#floor && resourceVersion < this.#since;
  }

  /**
   * Applies information that was requested at `start`. Ignores the information if the history has another start in the
   * meantime.
   */
  recall(start: HistoryStart, { floor, since }: Recalled): void {
    if (start.oldestPosition !== this.oldestPosition || start.since !== this.#since) return;
    this.#floor = Math.max(this.#floor, floor);
    this.#since = since;
  }

  /** Position of the next change, counted from the start of the history. Readers continue from a position. */
  get position(): number {
    return this.#start + this.#changes.length;
  }

  /** Position of the oldest change in the history. */
  get oldestPosition(): number {
    return this.#start + this.#first;
  }

  /** Returns the position of the first change after a resourceVersion; undefined if a change after it is missing. */
  positionAfter(resourceVersion: number): number | undefined {
    return resourceVersion < this.#since ? undefined : this.#start + this.#indexAfter(resourceVersion);
  }

  /** Returns the change at a position; undefined if the change was removed or has not happened yet. */
  at(position: number): Change<F> | undefined {
    return position < this.oldestPosition ? undefined : this.#changes[position - this.#start];
  }

  /** Returns the changes after a resourceVersion, oldest first; undefined if any is missing. */
  after(resourceVersion: number): readonly Change<F>[] | undefined {
    return resourceVersion < this.#since ? undefined : this.#present(this.#indexAfter(resourceVersion));
  }

  /** Returns the changes from a position; undefined if any is missing. */
  from(position: number): readonly Change<F>[] | undefined {
    return position < this.oldestPosition ? undefined : this.#present(position - this.#start);
  }

  add(change: Change<F>): void {
    this.#changes.push(change);
    this.#bytes += sizeOf(change);
    while (this.#changes.length - this.#first > maxChanges || this.#bytes > maxBytes) {
      const oldest = this.#changes[this.#first] as Change<F>;
      this.#bytes -= sizeOf(oldest);
      this.#since = Math.max(this.#since, oldest.resourceVersion);
      this.#floor = Math.max(this.#floor, oldest.resourceVersion);
      this.#changes[this.#first] = undefined;
      this.#first += 1;
    }
    if (this.#first <= 1000 || this.#first * 2 <= this.#changes.length) return;
    this.#changes = this.#changes.slice(this.#first);
    this.#start += this.#first;
    this.#first = 0;
  }

  /**
   * Records that the latest changes are the differences between two lists. Open watches send them, but only readers
   * that continue from the new list or later miss nothing: the lists do not show an object that was created and deleted
   * between them, and a reader may have read its creation from another replica. `lastChange` is the last known
   * resourceVersion of these changes.
   */
  relisted(resourceVersion: number, lastChange: number): void {
    this.#since = Math.max(this.#since, resourceVersion);
    this.#floor = Math.max(this.#floor, lastChange);
    this.#listed = this.position;
  }

  /** Removes all changes. The history restarts after a resourceVersion, which may be older than the last change. */
  reset(resourceVersion: number): void {
    // Skips a position, so that readers of all changes notice the gap too.
    this.#start += this.#changes.length + 1;
    this.#changes = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#since = resourceVersion;
    this.#floor = 1;
    this.#listed = this.#start;
  }

  #present(index: number): readonly Change<F>[] {
    return this.#changes.slice(index) as Change<F>[];
  }

  /** Returns the index of the first change after a resourceVersion. */
  #indexAfter(resourceVersion: number): number {
    let low = Math.max(this.#first, this.#listed - this.#start);
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle] as Change<F>).resourceVersion <= resourceVersion) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
