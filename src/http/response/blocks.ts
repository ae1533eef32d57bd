const newline = 0x0a;
const space = 0x20;
/** Spaces per nesting level. */
const indent = 2;
/** Number of bytes in a full block. */
export const blockSize = 64 * 1024;

/** Collects indented text in blocks. */
export class Blocks {
  #full: Buffer[] = [];
  #block = Buffer.allocUnsafeSlow(blockSize);
  #used = 0;

  get hasFull(): boolean {
    return this.#full.length > 0;
  }

  put(byte: number): void {
    this.#block[this.#used++] = byte;
    if (this.#used === this.#block.length) this.#next();
  }

  breakLine(depth: number): void {
    this.put(newline);
    for (let i = depth * indent; i > 0; i -= 1) this.put(space);
  }

  /** Returns the full blocks and removes them. */
  takeFull(): readonly Buffer[] {
    const full = this.#full;
    if (full.length > 0) this.#full = [];
    return full;
  }

  /** Content of the last block, which is not full. */
  get rest(): Buffer {
    return this.#block.subarray(0, this.#used);
  }

  #next(): void {
    this.#full.push(this.#block);
    this.#block = Buffer.allocUnsafeSlow(blockSize);
    this.#used = 0;
  }
}
