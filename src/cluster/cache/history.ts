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

/**
 * Interval of resourceVersions, without both ends, in which changes may be missing: before the first list and before
 * removed changes, and between the last version before a list and the version of that list.
 */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** For a reader that continues from an older version in the gap, changes are missing. */
  readonly floor: number;
  /** For a reader that continues from this version or a newer one, no change is missing. */
  readonly since: number;
  /** Position at which such a reader continues. */
  readonly end: number;
}

export type Recalled = Pick<Gap, 'floor' | 'since'>;

export const maxChanges = 10_000;
const maxBytes = 64 * 1024 * 1024;
/** Maximum lists whose gaps are known. Older gaps become part of the first gap. */
const maxGaps = 100;

const sizeOf = ({ object }: Change<unknown>): number => object.length + object.managedFieldsSize;

/** Last changes of a store, so that a watch can start at an earlier resourceVersion. */
export class History<F> {
  /** Changes, oldest first; those before `#first` are removed and undefined. */
  #changes: (Change<F> | undefined)[] = [];
  #first = 0;
  /** Position of the first of `#changes`. */
  #start = 0;
  #bytes = 0;
  /** Gaps, oldest first. The first gap has no start. */
  #gaps: Gap[] = [beforeList(0, 0)];

  /** Oldest resourceVersion from which a reader can continue, unless a later gap contains it. */
  get since(): number {
    return this.#firstGap.since;
  }

  get #firstGap(): Gap {
    return this.#gaps[0] as Gap;
  }

  /** Returns the gap around a resourceVersion; undefined if a reader can continue from the version. */
  gapAt(resourceVersion: number): Gap | undefined {
    return this.#gaps.find(({ from, to }) => from < resourceVersion && resourceVersion < to);
  }

  /** Returns true if it is unknown whether the history contains all changes after a resourceVersion. */
  isInDoubt(resourceVersion: number): boolean {
    const gap = this.gapAt(resourceVersion);
    return gap !== undefined && resourceVersion >= gap.floor && resourceVersion < gap.since;
  }

  /** Applies information about a gap. Ignores the information if the gap has changed in the meantime. */
  recall(gap: Gap, { floor, since }: Recalled): void {
    const at = this.#gaps.indexOf(gap);
    if (at >= 0) this.#gaps[at] = { ...gap, floor: Math.max(gap.floor, floor), since };
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
    const gap = this.gapAt(resourceVersion);
    if (gap === undefined) return this.#start + this.#indexAfter(resourceVersion);
    return resourceVersion < gap.since ? undefined : Math.max(gap.end, this.oldestPosition);
  }

  /** Returns the change at a position; undefined if the change was removed or has not happened yet. */
  at(position: number): Change<F> | undefined {
    return position < this.oldestPosition ? undefined : this.#changes[position - this.#start];
  }

  /** Returns the changes after a resourceVersion, oldest first; undefined if any is missing. */
  after(resourceVersion: number): readonly Change<F>[] | undefined {
    const position = this.positionAfter(resourceVersion);
    return position === undefined ? undefined : this.#present(position - this.#start);
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
      this.#forget(oldest.resourceVersion);
      this.#changes[this.#first] = undefined;
      this.#first += 1;
    }
    if (this.#first <= 1000 || this.#first * 2 <= this.#changes.length) return;
    this.#changes = this.#changes.slice(this.#first);
    this.#start += this.#first;
    this.#first = 0;
  }

  /**
   * Records that a list replaced the objects, so that the latest changes are only the differences to the objects at
   * `from`. Readers from `from` or an older version continue with them. A reader from a version after `from` would miss
   * the deletion of an object that existed only between the lists, which it may know from another replica. `lastChange`:
   * the last resourceVersion of the differences.
   */
  addGap(from: number, to: number, lastChange: number): void {
    this.#gaps.push({ from, to, floor: lastChange, since: to, end: this.position });
    if (this.#gaps.length > maxGaps) this.#forget(this.#gaps[1]?.to ?? 0);
  }

  /** Refuses readers from versions older than this one. */
  #forget(resourceVersion: number): void {
    const { to, end } = this.#firstGap;
    if (resourceVersion < to) return;
    const first = { from: -Infinity, to: resourceVersion, floor: resourceVersion, since: resourceVersion, end };
    this.#gaps = [first, ...this.#gaps.slice(1).filter((gap) => gap.to > resourceVersion)];
  }

  /** Removes all changes. The history restarts after a resourceVersion, which may be older than the last change. */
  reset(resourceVersion: number): void {
    // Skips a position, so that readers of all changes notice the gap too.
    this.#start += this.#changes.length + 1;
    this.#changes = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#gaps = [beforeList(resourceVersion, this.#start)];
  }

  #present(index: number): readonly Change<F>[] {
    return this.#changes.slice(index) as Change<F>[];
  }

  /** Returns the index of the first change after a resourceVersion. */
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

/** Returns the gap before a list without a former list. */
const beforeList = (to: number, end: number): Gap => ({ from: -Infinity, to, floor: 1, since: to, end });
