/**
 * Stores the bytes of objects contiguously in slabs outside the V8 heap. If the order of a list is the order of the
 * bytes, the list is written in few pieces, without copying. `tidy` establishes that order. Objects beyond the limit of
 * the arena are packed.
 */
import { Packer, packTogether } from './packed.ts';
import { Slice, type SignalSource } from '../../runtime/slice.ts';
import type { Slab, StoredObject } from './stored-object.ts';

const slabSize = 128 * 1024;
const smallestSlab = 8 * 1024;
/** Contiguous objects of at least this many bytes are not moved next to other objects. */
const longRun = slabSize / 4;
/**
 * Maximum bytes of replaced object versions that stay unpacked: watches read a replaced version immediately, if at all.
 */
const maxFresh = 4 * 1024 * 1024;
/** Minimum bytes of replaced object versions that are packed together. */
const runSize = 256 * 1024;

class SharedSlab implements Slab {
  readonly memory: Buffer;
  used = 0;
  /** Bytes of the objects that are still in the slab. */
  live = 0;
  readonly tenants: StoredObject<unknown>[] = [];

  constructor(size: number) {
    this.memory = Buffer.allocUnsafeSlow(size);
  }

  add(object: StoredObject<unknown>): void {
    object.moveTo(this, this.used);
    this.used += object.length;
    this.live += object.length;
    this.tenants.push(object);
  }
}

export class Arena {
  readonly #limit: number;
  readonly #packer = new Packer();
  /** Slabs, oldest first. */
  readonly #slabs = new Set<SharedSlab>();
  #open: SharedSlab | undefined;
  #slabBytes = 0;
  #packedBytes = 0;
  /** Replaced object versions that are not packed yet, oldest first. */
  #fresh: StoredObject<unknown>[] = [];
  #freshBytes = 0;
  /** Number of moves of objects into a slab, now and when `tidy` last finished. */
  #moves = 0;
  #tidyMoves = 0;

  /** `limit`: maximum bytes in slabs. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes of the objects: those in slabs outside the V8 heap, and packed bytes, some of which are in the heap. */
  get bytes(): number {
    return this.#slabBytes + this.#packedBytes;
  }

  /** Moves a new object into a slab, unless the object is already in a slab or packed. */
  add(object: StoredObject<unknown>): void {
    if (this.#slabOf(object) !== undefined || object.slab === undefined) return;
    this.#packedBytes += object.packedSize;
    this.#settle(object);
    this.#makeRoom();
  }

  /** Moves a replaced object version into dedicated memory, so that it does not retain the slab. */
  retire(object: StoredObject<unknown>): void {
    const slab = this.#slabOf(object);
    if (slab !== undefined || object.slab === undefined) this.#packedBytes -= object.packedSize;
    if (slab !== undefined) {
      isolate(object);
      this.#leave(slab, object.length);
    }
    this.#fresh.push(object);
    this.#freshBytes += object.length;
    if (this.#freshBytes > maxFresh) this.#packOldest();
  }

  /** Removes all objects except the given ones. */
  retain(objects: ReadonlySet<StoredObject<unknown>>): void {
    this.#packedBytes = 0;
    for (const object of objects) this.#packedBytes += object.packedSize;
    for (const slab of this.#slabs) {
      const removed = slab.tenants.filter((tenant) => tenant.slab === slab && !objects.has(tenant));
      for (const tenant of removed) isolate(tenant);
      this.#leave(
        slab,
        removed.reduce((sum, { length }) => sum + length, 0),
      );
    }
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

  /** Packs the oldest replaced object versions, at least `runSize` bytes together. */
  #packOldest(): void {
    const run: StoredObject<unknown>[] = [];
    let bytes = 0;
    while (bytes < runSize) {
      const oldest = this.#fresh[run.length] as StoredObject<unknown>;
      run.push(oldest);
      bytes += oldest.length;
    }
    this.#fresh.splice(0, run.length);
    this.#freshBytes -= bytes;
    const plain = run.filter(({ slab }) => slab !== undefined);
    for (const [index, packed] of packTogether(plain.map((one) => one.bytes)).entries())
      plain[index]?.replaceBytes(packed);
  }

  #slabOf({ slab }: StoredObject<unknown>): SharedSlab | undefined {
    return slab instanceof SharedSlab && this.#slabs.has(slab) ? slab : undefined;
  }

  #moveTogether(objects: readonly StoredObject<unknown>[], bytes: number): void {
    const slab = this.#newSlab(bytes);
    const freed = new Map<SharedSlab, number>();
    for (const object of objects) {
      const old = object.slab as SharedSlab;
      freed.set(old, (freed.get(old) ?? 0) + object.length);
      slab.add(object);
    }
    for (const [old, length] of freed) this.#leave(old, length);
    this.#makeRoom();
  }

  #settle(object: StoredObject<unknown>): void {
    this.#moves += 1;
    // Slabs are small at first, so that a small store wastes little memory.
    const size = Math.min(slabSize, Math.max(smallestSlab, this.#slabBytes));
    if (object.length * 2 > size) return this.#newSlab(object.length).add(object);
    const full = this.#open;
    if (full === undefined || full.used + object.length > full.memory.length) {
      this.#open = this.#newSlab(size);
      if (full !== undefined) this.#leave(full, 0);
      return this.#settle(object);
    }
    full.add(object);
  }

  #newSlab(size: number): SharedSlab {
    const slab = new SharedSlab(size);
    this.#slabs.add(slab);
    this.#slabBytes += size;
    return slab;
  }

  /**
   * Records that bytes of a slab are unused, and moves the other objects out of the slab once it is more than half
   * empty.
   */
  #leave(slab: SharedSlab, bytes: number): void {
    slab.live -= bytes;
    if (slab === this.#open || slab.live * 2 > slab.used || !this.#slabs.has(slab)) return;
    this.#drop(slab);
    for (const tenant of slab.tenants) if (tenant.slab === slab) this.#settle(tenant);
  }

  #drop(slab: SharedSlab): void {
    this.#slabs.delete(slab);
    this.#slabBytes -= slab.memory.length;
  }

  /** Packs the objects of the oldest slabs until the remaining slabs fit into the limit. */
  #makeRoom(): void {
    if (this.#slabBytes <= this.#limit) return;
    for (const slab of this.#slabs) {
      if (this.#slabBytes <= this.#limit) return;
      if (slab === this.#open) continue;
      this.#drop(slab);
      for (const tenant of slab.tenants) {
        if (tenant.slab !== slab) continue;
        this.#packedBytes -= tenant.packedSize;
        tenant.replaceBytes(this.#packer.pack(tenant.bytes));
        this.#packedBytes += tenant.packedSize;
      }
    }
  }
}

/** Moves an object into dedicated memory. */
const isolate = (object: StoredObject<unknown>): void =>
  object.moveTo({ memory: Buffer.allocUnsafeSlow(object.length) }, 0);
