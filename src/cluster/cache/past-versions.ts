import { nextSize, Slab } from './slab.ts';
import type { StoredObject } from './stored-object.ts';

/**
 * Maximum bytes of replaced object versions that stay unpacked, unless the last version alone is larger: watches read a
 * replaced version immediately, if at all.
 */
const maxPlain = 4 * 1024 * 1024;

/** Stores replaced object versions in dedicated slabs, so that they do not retain the slabs of present objects. */
export class PastVersions {
  /** Unpacked slabs, oldest first. */
  #plain: Slab[] = [];
  #bytes = 0;

  add(object: StoredObject<unknown>): void {
    const last = this.#plain.at(-1);
    const slab = last?.hasRoomFor(object) === true ? last : this.#newSlab(object.length);
    slab.add(object);
    // Only the history retains replaced versions.
    slab.remove(object);
  }

  /** Returns an empty slab, which is not packed before it is filled. */
  #newSlab(length: number): Slab {
    const slab = new Slab(Math.max(length, nextSize(this.#bytes)));
    this.#bytes += slab.size;
    while (this.#bytes > maxPlain) {
      const oldest = this.#plain.shift();
      if (oldest === undefined) break;
      this.#bytes -= oldest.size;
      oldest.pack();
    }
    this.#plain.push(slab);
    return slab;
  }
}
