/** The schemas of the routes as a document has them: those that have a name once, and referred to by it. */
import { nameOf, type Schema } from '../http/schema.ts';

export class Components {
  readonly #prefix: string;
  readonly #translate: (schema: Schema) => Schema;
  readonly #schemas = new Map<string, { readonly of: Schema; readonly written: unknown }>();

  /** `prefix`: before the names, such as `#/definitions/`. `translate`: a schema, before what is in it, into the words of the document. */
  constructor(prefix: string, translate: (schema: Schema) => Schema = (schema) => schema) {
    this.#prefix = prefix;
    this.#translate = translate;
  }

  /** By name, in the order of the alphabet. */
  get schemas(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      [...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, { written }]) => [name, written]),
    );
  }

  /** A schema as the document has it. Throws if another one has its name. */
  write(schema: Schema): unknown {
    const name = nameOf(schema);
    if (name === undefined) return this.#inner(schema);
    const known = this.#schemas.get(name);
    if (known === undefined) {
      const entry = { of: schema, written: undefined as unknown };
      this.#schemas.set(name, entry);
      entry.written = this.#inner(schema);
    } else if (known.of !== schema && JSON.stringify(known.of) !== JSON.stringify(schema))
      throw new Error(`two schemas have the name ${name}`);
    return { $ref: `${this.#prefix}${name}` };
  }

  #inner(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#value(item));
    return Object.fromEntries(
      Object.entries(this.#translate(value as Schema)).map(([key, item]) => [key, this.#value(item)]),
    );
  }

  #value(value: unknown): unknown {
    if (Array.isArray(value)) return this.#inner(value);
    return typeof value === 'object' && value !== null ? this.write(value as Schema) : value;
  }
}
