import { colorJSON, el, folded, phrase, type Child } from './dom.ts';
import { isJSON } from './json.ts';
import { textOf, type ShownContent, type ShownSchema, type SchemaReader } from './openapi.ts';
import { constraintsOf, innerOf, partsOf, propertiesOf, requiredOf, typeOf } from './schema.ts';

/** Shows type and constraints in one line. */
export function schemaLine(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const schema = schemas.resolve(given);
  const words = [typeOf(given, schemas), ...constraintsOf(schema)];
  return [el('span', { class: 'type' }, words.join('; '))];
}

/** Shows type and constraints next to an input. Omits the pattern, which the description explains. */
export function fieldLine(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const { pattern: _pattern, ...rest } = schemas.resolve(given);
  return schemaLine(rest, schemas);
}

/** Maximum number of properties shown at once. */
const maxShown = 150;

/** Shows properties and items, each of which can be expanded. */
export function schemaTree(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const schema = schemas.resolve(given);
  const rows: Child[] = [...propertyRows(schema, schemas, 0)];
  const inner = innerOf(schema, schemas);
  if (inner !== undefined) {
    const head = [schema['items'] === undefined ? 'Any property: ' : 'Items: ', ...schemaLine(inner, schemas)];
    rows.push(el('li', {}, ...below(head, inner, schemas), ...about(inner, schemas)));
  }
  for (const { keyword, of } of partsOf(schema))
    for (const [at, one] of of.entries()) {
      const head = [`${keyword === 'allOf' ? 'And' : at === 0 ? 'Either' : 'Or'}: `, ...schemaLine(one, schemas)];
      rows.push(el('li', {}, ...below(head, one, schemas), ...about(one, schemas)));
    }
  return rows.length === 0 ? [] : [el('ul', { class: 'schema' }, ...rows)];
}

/** Shows the properties from the index `at`. The last row expands to the remaining properties. */
function propertyRows(schema: ShownSchema, schemas: SchemaReader, at: number): readonly Child[] {
  const required = requiredOf(schema);
  const properties = propertiesOf(schema);
  const end = at + maxShown;
  const rows = properties.slice(at, end).map(([name, one]) => {
    const head = [el('code', { class: 'name' }, name), ' ', ...schemaLine(one, schemas)];
    if (required.has(name)) head.push(' ', el('strong', {}, 'required'));
    return el('li', {}, ...below(head, one, schemas), ...about(one, schemas));
  });
  const left = properties.length - end;
  if (left <= 0) return rows;
  const rest = (): readonly Child[] => [el('ul', { class: 'schema' }, ...propertyRows(schema, schemas, end))];
  return [...rows, el('li', {}, folded([`${left} more`], rest))];
}

function about(given: ShownSchema, schemas: SchemaReader): readonly Child[] {
  const description = textOf(given['description']) || textOf(schemas.resolve(given)['description']);
  return description === '' ? [] : [el('p', { class: 'hint' }, ...phrase(description))];
}

/** Shows a line that expands to the properties of the schema or of its list items. */
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

/** Formats an example of a media type. */
export const exampleText = (value: unknown, mediaType: string): string =>
  typeof value === 'string' && !isJSON(mediaType) ? value : JSON.stringify(value, undefined, 2);

/** Shows the examples of a body. */
export function exampleBlocks({ type, examples }: ShownContent): readonly Child[] {
  // Runs after the caller has added the blocks to the page.
  queueMicrotask(colorJSON);
  return examples.flatMap(({ title, value }) => {
    const label = title === '' ? 'Example' : `Example: ${title}`;
    const attributes = { tabindex: 0, role: 'group', 'aria-label': label, class: isJSON(type) ? 'json' : undefined };
    return [el('p', {}, label), el('pre', attributes, exampleText(value, type))];
  });
}
