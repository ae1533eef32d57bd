import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { StoredObject } from './stored-object.ts';

/** Usual and minimum size of a slab in bytes. */
export const slabSize = 128 * 1024;
const smallestSlab = 8 * 1024;

/** Level 1 finds the repetitions in similar objects too. */
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Returns the size of the next slab. Slabs are small at first, so that few objects waste little memory. */
export const nextSize = (total: number): number => Math.min(slabSize, Math.max(smallestSlab, total));

/**
 * Memory outside the V8 heap for the bytes of objects, one after the other. A packed slab is compressed as a whole, with
 * Zstandard (RFC 8878), and unpacked as a whole when one of its objects is read.
 */
export class Slab {
  /** Objects in the slab that are not removed. */
  readonly tenants: Set<StoredObject<unknown>> = new Set();
  /** Bytes that are occupied, also by removed objects. */
  used = 0;
  /** Bytes of the tenants. */
  live = 0;
  #memory: Buffer | undefined;
  #packed: Buffer | undefined;
  /** Unpacked bytes, weakly cached, because a reader of one object usually reads the next object. */
  #unpacked: WeakRef<Buffer> | undefined;

  /** `isReturned`: the kernel gets the memory back as soon as the slab is garbage. */
  constructor(size: number, isReturned = false) {
    this.#memory = isReturned ? pages(size) : Buffer.allocUnsafeSlow(size);
  }

  /** Size of the memory in bytes. */
  get size(): number {
    return (this.#memory ?? this.#packed ?? nothing).length;
  }

  get isPacked(): boolean {
    return this.#packed !== undefined;
  }

  get memory(): Buffer {
    let memory = this.#memory ?? this.#unpacked?.deref();
    if (memory === undefined) {
      memory = zstdDecompressSync(this.#packed ?? nothing, { chunkSize: Math.max(this.used, 64) });
      this.#unpacked = new WeakRef(memory);
    }
    return memory;
  }

  hasRoomFor({ length }: StoredObject<unknown>): boolean {
    return !this.isPacked && this.used + length <= this.size;
  }

  /**
   * Moves an object out of its present slab, to the end of this one. Throws RangeError if this slab has no room for the
   * object.
   */
  add(object: StoredObject<unknown>): void {
    if (!this.hasRoomFor(object)) throw new RangeError(`a slab has no room for ${object.length} bytes`);
    object.slab?.remove(object);
    object.moveTo(this, this.used);
    this.used += object.length;
    this.live += object.length;
    this.tenants.add(object);
  }

  /** The bytes of a removed object stay readable. */
  remove(object: StoredObject<unknown>): void {
    if (this.tenants.delete(object)) this.live -= object.length;
  }

  pack(): void {
    this.#packed = Buffer.from(zstdCompressSync(this.memory.subarray(0, this.used), compression));
    this.#memory = undefined;
  }
}

const nothing = Buffer.alloc(0);

/**
 * Allocates pages of the kernel: V8 does not allocate resizable buffers with malloc, which keeps most of the memory that
 * is freed. Allocation takes seven times as long as with malloc, and reading single bytes twice as long.
 */
const pages = (size: number): Buffer => Buffer.from(new ArrayBuffer(size, { maxByteLength: size }), 0, size);
