import { el, folded, phrase, type Child } from './dom.ts';
import { textOf, type ShownSchema, type SchemaReader } from './openapi.ts';
import { constraintsOf, innerOf, partsOf, propertiesOf, requiredOf, typeOf } from './schema.ts';

/** What a schema says of itself, in one line. */
export function schemaLine(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const schema = schemas.resolve(given);
  const words = [typeOf(given, schemas), ...constraintsOf(schema)];
  return [el('span', { class: 'type' }, words.join('; '))];
}

/** The same for who fills it in. What is right is said by its description: people read no regular expressions. */
export function fieldLine(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const { pattern: _pattern, ...rest } = schemas.resolve(given);
  return schemaLine(rest, schemas);
}

/** Properties that are shown at once. */
const most = 150;

/** What is in it, each with what is in that, to be unfolded. */
export function schemaTree(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const schema = schemas.resolve(given);
  const rows: Child[] = [...propertyRows(schema, schemas, 0)];
  const inner = innerOf(schema, schemas);
  if (inner !== undefined) {
    const head = [schema['items'] === undefined ? 'Under any name: ' : 'Each: ', ...schemaLine(inner, schemas)];
    rows.push(el('li', {}, ...below(head, inner, schemas), ...about(inner, schemas)));
  }
  for (const { how, of } of partsOf(schema))
    for (const [at, one] of of.entries()) {
      const head = [`${how === 'allOf' ? 'And' : at === 0 ? 'Either' : 'Or'}: `, ...schemaLine(one, schemas)];
      rows.push(el('li', {}, ...below(head, one, schemas), ...about(one, schemas)));
    }
  return rows.length === 0 ? [] : [el('ul', { class: 'schema' }, ...rows)];
}

/** Those from `at` on; the last one unfolds what is left. */
function propertyRows(schema: ShownSchema, schemas: SchemaReader, at: number): readonly Child[] {
  const required = requiredOf(schema);
  const properties = propertiesOf(schema);
  const end = at + most;
  const rows = properties.slice(at, end).map(([name, one]) => {
    const head = [el('code', { class: 'name' }, name), ' ', ...schemaLine(one, schemas)];
    if (required.has(name)) head.push(' ', el('strong', {}, 'required'));
    return el('li', {}, ...below(head, one, schemas), ...about(one, schemas));
  });
  const left = properties.length - end;
  if (left <= 0) return rows;
  const rest = (): readonly Child[] => [el('ul', { class: 'schema' }, ...propertyRows(schema, schemas, end))];
  return [...rows, el('li', {}, folded([`and ${left} more`], rest))];
}

function about(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const description = textOf(given['description']) || textOf(schemas.resolve(given)['description']);
  return description === '' ? [] : [el('p', { class: 'hint' }, ...phrase(description))];
}

/** Lists are as what is in them. */
function below(head: readonly Child[], given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  let at = given;
  for (let depth = 0; depth < 16; depth += 1) {
    const schema = schemas.resolve(at);
    const inner = innerOf(schema, schemas);
    if (propertiesOf(schema).length > 0 || partsOf(schema).length > 0)
      return [folded(head, () => schemaTree(schema, schemas))];
    if (inner === undefined) break;
    at = inner;
  }
  return [el('div', { class: 'leaf' }, ...head)];
}
