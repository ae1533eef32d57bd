/**
 * Stores the bytes of objects contiguously in slabs outside the V8 heap. If the order of a list is the order of the
 * bytes, the list is written in few pieces, without copying. `tidy` establishes that order. Slabs beyond the limit of
 * the arena are packed.
 */
import { PastVersions } from './past-versions.ts';
import { nextSize, Slab, slabSize } from './slab.ts';
import { Slice, type SignalSource } from '../../runtime/slice.ts';
import type { StoredObject } from './stored-object.ts';

/** Contiguous objects of at least this many bytes are not moved next to other objects. */
const longRun = slabSize / 4;
/** Bytes in slabs from which on freed slabs matter more than fast slabs. */
const manyBytes = 64 * 1024 * 1024;

export class Arena {
  readonly #limit: number;
  /** Slabs that are not packed, oldest first. */
  readonly #plain = new Set<Slab>();
  readonly #packed = new Set<Slab>();
  readonly #past = new PastVersions();
  #open: Slab | undefined;
  #plainBytes = 0;
  #packedBytes = 0;
  #managedFieldsBytes = 0;
  #size = 0;
  /** Number of calls of `#settle`, now and at the start of the last complete `tidy`. */
  #moves = 0;
  #tidyMoves = 0;

  /** `limit`: maximum bytes in slabs that are not packed. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes of the objects: those in slabs outside the V8 heap, and managedFields, some of which are in the heap. */
  get bytes(): number {
    return this.#plainBytes + this.#packedBytes + this.#managedFieldsBytes;
  }

  /** Number of objects. */
  get size(): number {
    return this.#size;
  }

  /** Bytes in slabs that are not packed. */
  get plainBytes(): number {
    return this.#plainBytes;
  }

  /** Moves a new object into a slab, unless the object is already in a slab of this arena. */
  add(object: StoredObject<unknown>): void {
    if (this.#slabOf(object) !== undefined) return;
    this.#managedFieldsBytes += object.managedFieldsSize;
    this.#size += 1;
    this.#settle(object);
    this.#makeRoom();
  }

  /**
   * Removes a replaced object version. If its slab is not packed, the object is moved out, so that a history that retains
   * the object does not retain the slab.
   */
  retire(object: StoredObject<unknown>): void {
    // `add` moves the object to another slab.
    const slab = this.#slabOf(object);
    if (slab?.isPacked !== true) this.#past.add(object);
    if (slab !== undefined) this.#remove(object, slab);
  }

  /** Removes an object that is no longer used. */
  discard(object: StoredObject<unknown>): void {
    const slab = this.#slabOf(object);
    if (slab !== undefined) this.#remove(object, slab);
  }

  /** Removes all objects except the given ones. */
  retain(objects: ReadonlySet<StoredObject<unknown>>): void {
    this.#size = objects.size;
    this.#managedFieldsBytes = 0;
    for (const object of objects) this.#managedFieldsBytes += object.managedFieldsSize;
    const slabs = [...this.#plain, ...this.#packed];
    for (const slab of slabs) for (const tenant of slab.tenants) if (!objects.has(tenant)) slab.remove(tenant);
    // Only now, because reclaiming one slab can move the objects of another one.
    for (const slab of slabs) this.#reclaim(slab);
  }

  /**
   * Makes the bytes of consecutive objects of a list contiguous. Works in slices, so that the event loop is not
   * blocked. Throws the signal's reason if the signal is aborted.
   */
  async tidy(objects: readonly StoredObject<unknown>[], waiting: SignalSource): Promise<void> {
    // Objects that are added during a pause wait for the next call.
    const moves = this.#moves;
    if (moves === this.#tidyMoves) return;
    const slice = new Slice(waiting);
    let batch: StoredObject<unknown>[] = [];
    let bytes = 0;
    let runs = 0;
    const flush = (): void => {
      if (runs > 1) this.#moveTogether(batch, bytes);
      batch = [];
      bytes = 0;
      runs = 0;
    };
    for (let start = 0, end = 1; start < objects.length; start = end, end += 1) {
      if (slice.isOver) await slice.next();
      const first = objects[start] as StoredObject<unknown>;
      let length = first.length;
      while (
        end < objects.length &&
        length < slabSize &&
        objects[end]?.follows(objects[end - 1] as typeof first) === true
      ) {
        length += (objects[end] as typeof first).length;
        end += 1;
      }
      if (length >= longRun || this.#slabOf(first) === undefined) {
        flush();
        continue;
      }
      for (let i = start; i < end; i += 1) batch.push(objects[i] as typeof first);
      bytes += length;
      runs += 1;
      if (bytes >= slabSize) flush();
    }
    flush();
    this.#tidyMoves = moves;
  }

  /** Returns the slab of an object; undefined if the object is not, or no longer, in this arena. */
  #slabOf(object: StoredObject<unknown>): Slab | undefined {
    const { slab } = object;
    if (slab === undefined || !slab.tenants.has(object)) return undefined;
    return this.#plain.has(slab) || this.#packed.has(slab) ? slab : undefined;
  }

  #remove(object: StoredObject<unknown>, slab: Slab): void {
    this.#managedFieldsBytes -= object.managedFieldsSize;
    this.#size -= 1;
    slab.remove(object);
    this.#reclaim(slab);
  }

  #moveTogether(objects: readonly StoredObject<unknown>[], bytes: number): void {
    const slab = this.#newSlab(bytes);
    const left = new Set<Slab>();
    for (const object of objects) {
      const old = this.#slabOf(object);
      // The object was removed during a pause.
      if (old === undefined) continue;
      left.add(old);
      slab.add(object);
    }
    // Packing an older slab instead would pack objects that the same compaction moves next.
    if (this.#plainBytes > this.#limit) this.#pack(slab);
    for (const old of left) this.#reclaim(old);
    // All of the objects may have been removed.
    this.#reclaim(slab);
    this.#makeRoom();
  }

  #settle(object: StoredObject<unknown>): void {
    this.#moves += 1;
    const size = nextSize(this.#plainBytes);
    if (object.length * 2 > size) return this.#newSlab(object.length).add(object);
    const full = this.#open;
    if (full?.hasRoomFor(object) !== true) {
      this.#open = this.#newSlab(size);
      if (full !== undefined) this.#reclaim(full);
      return this.#settle(object);
    }
    full.add(object);
  }

  #newSlab(size: number): Slab {
    const slab = new Slab(size, this.#plainBytes > manyBytes);
    this.#plain.add(slab);
    this.#plainBytes += size;
    return slab;
  }

  /** Frees a slab that is at least half empty: moves its objects to other slabs. */
  #reclaim(slab: Slab): void {
    if (slab === this.#open || slab.live * 2 > slab.used) return;
    this.#drop(slab);
    for (const tenant of slab.tenants) this.#settle(tenant);
  }

  #drop(slab: Slab): void {
    if (this.#plain.delete(slab)) this.#plainBytes -= slab.size;
    if (this.#packed.delete(slab)) this.#packedBytes -= slab.size;
  }

  /** Packs the oldest slabs until the remaining slabs fit into the limit. */
  #makeRoom(): void {
    if (this.#plainBytes <= this.#limit) return;
    for (const slab of this.#plain) {
      if (this.#plainBytes <= this.#limit) return;
      if (slab !== this.#open) this.#pack(slab);
    }
  }

  #pack(slab: Slab): void {
    this.#drop(slab);
    slab.pack();
    this.#packed.add(slab);
    this.#packedBytes += slab.size;
  }
}
