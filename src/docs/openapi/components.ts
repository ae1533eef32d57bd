/** Schemas as a document has them: those that have a name once, and referred to by it. */
import { nameOf, type JSONSchema } from './json-schema.ts';
import { sorted } from './operation.ts';

/** The words of JSON JSONSchema behind which there are schemas: one, a list of them, and some by name. */
const single = new Set(['items', 'additionalProperties', 'not']);
const lists = new Set(['allOf', 'anyOf', 'oneOf']);
const maps = new Set(['properties', 'patternProperties']);

const isSchema = (value: unknown): value is JSONSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export class Components {
  readonly #prefix: string;
  readonly #translate: (schema: JSONSchema) => JSONSchema;
  readonly #schemas = new Map<string, { readonly of: JSONSchema; written: unknown }>();

  /** `prefix`: before the names, such as `#/definitions/`. `translate`: a schema, before what is in it, into the words of the document. */
  constructor(prefix: string, translate: (schema: JSONSchema) => JSONSchema = (schema) => schema) {
    this.#prefix = prefix;
    this.#translate = translate;
  }

  /** By name, in the order of the alphabet. */
  get schemas(): Readonly<Record<string, unknown>> {
    return sorted(new Map([...this.#schemas].map(([name, { written }]) => [name, written])));
  }

  /** A schema as the document has it. Throws if another one has its name. */
  write(schema: JSONSchema): unknown {
    const name = nameOf(schema);
    if (name === undefined) return this.#whole(schema);
    const known = this.#schemas.get(name);
    if (known === undefined) {
      const entry = { of: schema, written: undefined as unknown };
      this.#schemas.set(name, entry);
      entry.written = this.#whole(schema);
    } else if (known.of !== schema && JSON.stringify(known.of) !== JSON.stringify(schema))
      throw new Error(`two schemas have the name ${name}`);
    return { $ref: `${this.#prefix}${name}` };
  }

  /** What is no schema, such as a default, stays as it is. */
  #whole(schema: JSONSchema): unknown {
    return Object.fromEntries(
      Object.entries(this.#translate(schema)).map(([word, value]) => [word, this.#behind(word, value)]),
    );
  }

  #behind(word: string, value: unknown): unknown {
    if (lists.has(word) && Array.isArray(value)) return value.map((one) => this.#one(one));
    if (!isSchema(value)) return value;
    if (single.has(word)) return this.write(value);
    if (!maps.has(word)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#one(one)]));
  }

  #one(value: unknown): unknown {
    return isSchema(value) ? this.write(value) : value;
  }
}
