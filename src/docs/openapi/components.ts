/** Writes the schemas of a document. Named schemas are defined once and referenced by name. */
import { nameOf, type JSONSchema } from './json-schema.ts';
import { sorted } from './operation.ts';

/** Keywords of JSON Schema whose value is a schema, a list of schemas, or a map of schemas. */
const single = new Set(['items', 'additionalProperties', 'not']);
const lists = new Set(['allOf', 'anyOf', 'oneOf']);
const maps = new Set(['properties', 'patternProperties']);

const isSchema = (value: unknown): value is JSONSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export class Components {
  readonly #prefix: string;
  readonly #translate: (schema: JSONSchema) => JSONSchema;
  readonly #schemas = new Map<string, { readonly source: JSONSchema; written: unknown }>();

  /**
   * `prefix`: prefix of references, such as `#/definitions/`. `translate` converts a schema to the dialect of the
   * document. Outer schemas are converted before inner schemas.
   */
  constructor(prefix: string, translate: (schema: JSONSchema) => JSONSchema = (schema) => schema) {
    this.#prefix = prefix;
    this.#translate = translate;
  }

  /** Returns the written schemas by name, sorted. */
  get schemas(): Readonly<Record<string, unknown>> {
    return sorted(new Map([...this.#schemas].map(([name, { written }]) => [name, written])));
  }

  /**
   * Returns the schema in the dialect of the document, or a reference to the schema. Throws if a different schema has
   * the same name.
   */
  write(schema: JSONSchema): unknown {
    const name = nameOf(schema);
    if (name === undefined) return this.#whole(schema);
    const known = this.#schemas.get(name);
    if (known === undefined) {
      const entry = { source: schema, written: undefined as unknown };
      this.#schemas.set(name, entry);
      entry.written = this.#whole(schema);
    } else if (known.source !== schema && JSON.stringify(known.source) !== JSON.stringify(schema))
      throw new Error(`two different schemas have the name ${name}`);
    return { $ref: `${this.#prefix}${name}` };
  }

  /** Converts a schema and the schemas inside it. Copies all other values, such as a default. */
  #whole(schema: JSONSchema): unknown {
    return Object.fromEntries(
      Object.entries(this.#translate(schema)).map(([keyword, value]) => [keyword, this.#valueOf(keyword, value)]),
    );
  }

  #valueOf(keyword: string, value: unknown): unknown {
    if (lists.has(keyword) && Array.isArray(value)) return value.map((one) => this.#writeIfSchema(one));
    if (!isSchema(value)) return value;
    if (single.has(keyword)) return this.write(value);
    if (!maps.has(keyword)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#writeIfSchema(one)]));
  }

  #writeIfSchema(value: unknown): unknown {
    return isSchema(value) ? this.write(value) : value;
  }
}
