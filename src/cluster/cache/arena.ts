/**
 * Where the bytes of a store's objects lie: side by side in slabs outside the V8 heap. A list is written from few pieces, without
 * copying, as far as its order is the order in which they lie; `tidy` sees to that. What is more than the arena may hold is packed.
 */
import { Packer, packTogether } from './packed.ts';
import { Slice, type WaitingSlice } from '../../runtime/slice.ts';
import type { Slab, StoredObject } from './stored-object.ts';

const slabSize = 128 * 1024;
const smallestSlab = 8 * 1024;
/** Objects that lie together in so many bytes are not moved to lie together with others. */
const longRun = slabSize / 4;
/** So many bytes of states that are past stay as they are: watches read them at once, if at all. */
const maxFresh = 4 * 1024 * 1024;
/** Then so many bytes of them are packed as one. */
const runSize = 256 * 1024;

class SharedSlab implements Slab {
  readonly memory: Buffer;
  used = 0;
  /** Bytes of the objects that are still here. */
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
  /** The oldest first. */
  readonly #slabs = new Set<SharedSlab>();
  #open: SharedSlab | undefined;
  #slabBytes = 0;
  #packedBytes = 0;
  /** States that are past and not yet packed, the oldest first. */
  #fresh: StoredObject<unknown>[] = [];
  #freshBytes = 0;
  /** How often an object was put somewhere, and how often when all was tidy. */
  #moves = 0;
  #tidyMoves = 0;

  /** `limit`: bytes that may lie in slabs. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes held of the objects, outside the V8 heap but for what is packed. */
  get bytes(): number {
    return this.#slabBytes + this.#packedBytes;
  }

  /** Gives a new object its place, if it has none yet. */
  add(object: StoredObject<unknown>): void {
    if (this.#slabOf(object) !== undefined || object.slab === undefined) return;
    this.#packedBytes += object.packedSize;
    this.#settle(object);
    this.#makeRoom();
  }

  /** An object that is past lies by itself, and no longer keeps the memory of others. */
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

  /** Forgets every object but these. */
  retain(objects: ReadonlySet<StoredObject<unknown>>): void {
    this.#packedBytes = 0;
    for (const object of objects) this.#packedBytes += object.packedSize;
    for (const slab of this.#slabs) {
      const gone = slab.tenants.filter((tenant) => tenant.slab === slab && !objects.has(tenant));
      for (const tenant of gone) isolate(tenant);
      this.#leave(
        slab,
        gone.reduce((sum, { length }) => sum + length, 0),
      );
    }
  }

  /** Lays objects that follow each other in a list side by side, unless they do already, in slices. Throws the signal's reason. */
  async tidy(objects: readonly StoredObject<unknown>[], waiting: WaitingSlice): Promise<void> {
    // What comes while this waits is for the next time.
    const moves = this.#moves;
    if (moves === this.#tidyMoves) return;
    const slice = new Slice(waiting);
    let together: StoredObject<unknown>[] = [];
    let bytes = 0;
    let runs = 0;
    const flush = (): void => {
      if (runs > 1) this.#together(together, bytes);
      together = [];
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
      for (let i = start; i < end; i += 1) together.push(objects[i] as typeof first);
      bytes += length;
      runs += 1;
      if (bytes >= slabSize) flush();
    }
    flush();
    this.#tidyMoves = moves;
  }

  /** As many as are worth it. */
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
    for (const [index, packed] of packTogether(plain.map((one) => one.bytes)).entries()) plain[index]?.keepAs(packed);
  }

  #slabOf({ slab }: StoredObject<unknown>): SharedSlab | undefined {
    return slab instanceof SharedSlab && this.#slabs.has(slab) ? slab : undefined;
  }

  #together(objects: readonly StoredObject<unknown>[], bytes: number): void {
    const slab = this.#newSlab(bytes);
    const left = new Map<SharedSlab, number>();
    for (const object of objects) {
      const old = object.slab as SharedSlab;
      left.set(old, (left.get(old) ?? 0) + object.length);
      slab.add(object);
    }
    for (const [old, length] of left) this.#leave(old, length);
    this.#makeRoom();
  }

  #settle(object: StoredObject<unknown>): void {
    this.#moves += 1;
    // A small store has small slabs.
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

  /** So many bytes of a slab are no longer needed. One that is more than half empty is cleared. */
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

  /** Packs what has lain longest. */
  #makeRoom(): void {
    if (this.#slabBytes <= this.#limit) return;
    for (const slab of this.#slabs) {
      if (this.#slabBytes <= this.#limit) return;
      if (slab === this.#open) continue;
      this.#drop(slab);
      for (const tenant of slab.tenants) {
        if (tenant.slab !== slab) continue;
        this.#packedBytes -= tenant.packedSize;
        tenant.keepAs(this.#packer.pack(tenant.bytes));
        this.#packedBytes += tenant.packedSize;
      }
    }
  }
}

/** Moves an object into memory of its own. */
const isolate = (object: StoredObject<unknown>): void =>
  object.moveTo({ memory: Buffer.allocUnsafeSlow(object.length) }, 0);
