/**
 * Stores the managedFields of many objects. managedFields record who manages which fields. The managedFields of objects
 * from the same source differ only in times, addresses and uids, so their common text is stored once, as a template.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Packer, type Packed } from './packed.ts';

/** Values that differ between objects: times of writes, and list keys that are addresses or uids. */
const ownValues = /("time":"|\\"(?:ip|uid)\\":\\")([^"\\]*)/g;
/** Character that replaces an object's own value in a template. JSON texts never contain this character. */
const placeholder = '\0';
/** Maximum bytes and own values of managedFields that use a template. */
const maxLength = 64 * 1024;
const maxValues = 64;
/** Maximum bytes of all templates for new objects. */
const maxTemplates = 2 * 1024 * 1024;
/** Maximum texts that are remembered. After that, all texts are forgotten, and frequent texts soon return. */
const maxTexts = 8_192;
/** Latest templates that are tried before the template is looked up by its text, which takes ten times as long. */
const maxRecent = 4;

/** Approximate bytes of a Buffer in addition to its content. */
const pieceOverhead = 128;

/** The pieces of bytes between their own values. */
class Template {
  readonly pieces: readonly Buffer[];
  /** Bytes of memory. */
  readonly size: number;

  constructor(text: string) {
    this.pieces = text.split(placeholder).map((piece) => Buffer.from(piece, 'latin1'));
    this.size = text.length + pieceOverhead * this.pieces.length;
  }

  /** Returns the bytes as this template with its own values; undefined if the bytes differ from the pieces. */
  match(bytes: Buffer): Packed | undefined {
    const values: string[] = [];
    let at = 0;
    for (const [index, piece] of this.pieces.entries()) {
      if (index > 0) {
        const end = bytes.indexOf(piece[0] ?? 0, at);
        if (end === -1) return undefined;
        values.push(bytes.toString('latin1', at, end));
        at = end;
      }
      const end = at + piece.length;
      if (end > bytes.length || bytes.compare(piece, 0, piece.length, at, end) !== 0) return undefined;
      at = end;
    }
    return at === bytes.length ? new FilledTemplate(this, values.join(placeholder), at) : undefined;
  }
}

class FilledTemplate implements Packed {
  readonly length: number;
  readonly #template: Template;
  readonly #values: string;

  constructor(template: Template, values: string, length: number) {
    this.#template = template;
    this.#values = values;
    this.length = length;
  }

  get size(): number {
    return this.#values.length;
  }

  get bytes(): Buffer {
    const values = this.#values.split(placeholder);
    return Buffer.concat(
      this.#template.pieces.flatMap((piece, index) =>
        index === 0 ? [piece] : [Buffer.from(values[index - 1] ?? '', 'latin1'), piece],
      ),
    );
  }
}

export class ManagedFields {
  /** Templates by the digest of their text, for new objects. */
  readonly #templates = new LRUCache<string, Template>({ maxSize: maxTemplates, sizeCalculation: ({ size }) => size });
  /** Digests of texts that one object has. The second object with the text makes the template. */
  readonly #texts = new Set<string>();
  readonly #packer = new Packer();
  #bytes = 0;
  readonly #dropped = new FinalizationRegistry<number>((size) => (this.#bytes -= size));

  /** Bytes of the templates in memory, including those that only existing objects use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the packed bytes: only the object's own values if the template is known, otherwise the deflated text. */
  pack(bytes: Buffer): Packed {
    return this.#fill(bytes) ?? this.#packer.pack(bytes);
  }

  #fill(bytes: Buffer): Packed | undefined {
    if (bytes.length > maxLength || bytes.includes(placeholder)) return undefined;
    let tried = 0;
    // The latest template is first.
    for (const [key, template] of this.#templates.entries()) {
      const filled = template.match(bytes);
      if (filled !== undefined) {
        this.#templates.get(key);
        return filled;
      }
      if ((tried += 1) === maxRecent) break;
    }
    let values = 0;
    const text = bytes.toString('latin1').replace(ownValues, (_, before: string) => {
      values += 1;
      return `${before}${placeholder}`;
    });
    return values > maxValues ? undefined : this.#templateOf(text)?.match(bytes);
  }

  /** Returns undefined for a text that no other object has had. */
  #templateOf(text: string): Template | undefined {
    const key = hash('sha256', text, 'base64');
    const known = this.#templates.get(key);
    if (known !== undefined) return known;
    if (!this.#texts.delete(key)) {
      if (this.#texts.size === maxTexts) this.#texts.clear();
      this.#texts.add(key);
      return undefined;
    }
    const template = new Template(text);
    this.#bytes += template.size;
    this.#dropped.register(template, template.size);
    this.#templates.set(key, template);
    return template;
  }
}
